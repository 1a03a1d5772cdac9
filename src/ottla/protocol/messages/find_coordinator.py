"""FindCoordinator: the coordinator of a group or transaction; one key up to v3, several later (KIP-699)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import Int8, Int16, Int32, Message, String, message, since, struct


@message(key=10, versions="0-6", flexible="3+")
class FindCoordinatorRequest(Message):
    key: String = since(0, until=3, default="")
    key_type: Int8 = since(1, default=0)
    """0 for a group, 1 for a transaction, 2 for a share group."""
    coordinator_keys: Sequence[String] = since(4, default=())


@struct
class Coordinator:
    key: String = ""
    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None


@message(key=10, versions="0-6", flexible="3+")
class FindCoordinatorResponse(Message):
    throttle_time_ms: Int32 = since(1, default=0, ignorable=True)
    error_code: Int16 = since(0, until=3, default=0)
    error_message: String | None = since(1, until=3, default=None, ignorable=True)
    node_id: Int32 = since(0, until=3, default=0)
    host: String = since(0, until=3, default="")
    port: Int32 = since(0, until=3, default=0)
    coordinators: Sequence[Coordinator] = since(4, default=())
