"""VotersRecord, the control record that lists the voters of the metadata quorum (KIP-853)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import ZERO_UUID, Int16, Int32, Message, String, UInt16, Uuid, message, part, struct


@struct
class Endpoint:
    name: String = ""
    host: String = ""
    port: UInt16 = 0


@struct
class KRaftVersionFeature:
    min_supported_version: Int16 = 0
    max_supported_version: Int16 = 0


@struct
class Voter:
    """A voter: a node with one directory, its addresses, and the range of kraft.version that it supports."""

    voter_id: Int32 = 0
    voter_directory_id: Uuid = ZERO_UUID
    endpoints: Sequence[Endpoint] = ()
    k_raft_version_feature: KRaftVersionFeature = part(KRaftVersionFeature)


@message(key=6, versions="0", flexible="0+")
class VotersRecord(Message):
    """The set of voters. It applies as soon as the record is appended, before it is committed."""

    version: Int16 = 0
    voters: Sequence[Voter] = ()
