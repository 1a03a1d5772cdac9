"""BrokerHeartbeat: report the applied metadata offset; request to be unfenced or to shut down (KIP-631)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Bool, Int16, Int32, Int64, Message, Uuid, message, tagged


@message(key=63, versions="0-2", flexible="0+")
class BrokerHeartbeatRequest(Message):
    broker_id: Int32 = 0
    broker_epoch: Int64 = -1
    current_metadata_offset: Int64 = 0
    """The offset of the last applied metadata record."""
    want_fence: Bool = False
    want_shut_down: Bool = False
    offline_log_dirs: Sequence[Uuid] = tagged(0, since=1, default=())
    cordoned_log_dirs: Sequence[Uuid] | None = tagged(1, since=2, default=None)
    """Directories that must not get new partitions (KIP-1066); None leaves them unchanged."""


@message(key=63, versions="0-2", flexible="0+")
class BrokerHeartbeatResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    is_caught_up: Bool = False
    is_fenced: Bool = True
    should_shut_down: Bool = False
