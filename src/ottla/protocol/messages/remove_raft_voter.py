"""RemoveRaftVoter: remove a voter, running or not (KIP-853)."""

from __future__ import annotations

from ottla.protocol.schema import ZERO_UUID, Int16, Int32, Message, String, Uuid, message, since


@message(key=81, versions="0", flexible="0+")
class RemoveRaftVoterRequest(Message):
    cluster_id: String | None = ""
    voter_id: Int32 = 0
    voter_directory_id: Uuid = ZERO_UUID


@message(key=81, versions="0", flexible="0+")
class RemoveRaftVoterResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = since(0, default="", ignorable=True)
