"""BrokerRegistration: a started broker reports its endpoints and features to the controller (KIP-631)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import (
    ZERO_UUID,
    Bool,
    Int16,
    Int32,
    Int64,
    Message,
    String,
    UInt16,
    Uuid,
    message,
    since,
    struct,
)


@struct
class Listener:
    name: String = ""
    host: String = ""
    port: UInt16 = 0
    security_protocol: Int16 = 0


@struct
class Feature:
    name: String = ""
    min_supported_version: Int16 = 0
    max_supported_version: Int16 = 0


@message(key=62, versions="0-4", flexible="0+")
class BrokerRegistrationRequest(Message):
    broker_id: Int32 = 0
    cluster_id: String = ""
    incarnation_id: Uuid = ZERO_UUID
    """A random id of each start."""
    listeners: Sequence[Listener] = ()
    features: Sequence[Feature] = ()
    rack: String | None = None
    is_migrating_zk_broker: Bool = since(1, default=False)
    log_dirs: Sequence[Uuid] = since(2, default=(), ignorable=True)
    """The ids of the data directories, in order."""
    previous_broker_epoch: Int64 = since(3, default=-1, ignorable=True)
    """The broker epoch of the last clean shutdown; -1 after a crash (KIP-966)."""


@message(key=62, versions="0-4", flexible="0+")
class BrokerRegistrationResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    broker_epoch: Int64 = -1
