"""AddRaftVoter: make an observer of the metadata log a voter (KIP-853)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import ZERO_UUID, Bool, Int16, Int32, Message, String, UInt16, Uuid, message, since, struct


@struct
class Listener:
    name: String = ""
    host: String = ""
    port: UInt16 = 0


@message(key=80, versions="0-1", flexible="0+")
class AddRaftVoterRequest(Message):
    cluster_id: String | None = ""
    timeout_ms: Int32 = 0
    voter_id: Int32 = 0
    voter_directory_id: Uuid = ZERO_UUID
    listeners: Sequence[Listener] = ()
    ack_when_committed: Bool = since(1, default=True)
    """True to respond after the voters have the change, false after the leader has it."""


@message(key=80, versions="0-1", flexible="0+")
class AddRaftVoterResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = since(0, default="", ignorable=True)
