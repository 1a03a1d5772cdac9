"""UpdateRaftVoter: a voter reports its endpoints and its supported `kraft.version` (KIP-853)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.messages.add_raft_voter import Listener
from ottla.protocol.schema import ZERO_UUID, Int16, Int32, Message, String, Uuid, message, part, struct, tagged


@struct
class KRaftVersionFeature:
    min_supported_version: Int16 = 0
    max_supported_version: Int16 = 0


@message(key=82, versions="0", flexible="0+")
class UpdateRaftVoterRequest(Message):
    cluster_id: String | None = ""
    current_leader_epoch: Int32 = 0
    voter_id: Int32 = 0
    voter_directory_id: Uuid = ZERO_UUID
    listeners: Sequence[Listener] = ()
    k_raft_version_feature: KRaftVersionFeature = part(KRaftVersionFeature)


@struct
class CurrentLeader:
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1
    host: String = ""
    port: Int32 = 0


@message(key=82, versions="0", flexible="0+")
class UpdateRaftVoterResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    current_leader: CurrentLeader | None = tagged(0, since=0, default=None)
