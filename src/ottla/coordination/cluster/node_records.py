"""The records of `__cluster_metadata` about brokers, controllers, and the log itself (KIP-631, KIP-868)."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.schema import (
    ZERO_UUID,
    Bool,
    Int8,
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
    tagged,
)


@struct
class BrokerEndpoint:
    name: String = ""
    host: String = ""
    port: UInt16 = 0
    security_protocol: Int16 = 0


@struct
class BrokerFeature:
    name: String = ""
    min_supported_version: Int16 = 0
    max_supported_version: Int16 = 0


@message(key=0, versions="0-4", flexible="0+")
class RegisterBrokerRecord(Message):
    """The registration of a new incarnation of a broker. It replaces any earlier one."""

    broker_id: Int32 = 0
    is_migrating_zk_broker: Bool = since(2, default=False)
    incarnation_id: Uuid = ZERO_UUID
    broker_epoch: Int64 = 0
    """The offset of the first registration record of this incarnation."""
    end_points: Sequence[BrokerEndpoint] = ()
    features: Sequence[BrokerFeature] = ()
    rack: String | None = None
    fenced: Bool = True
    in_controlled_shutdown: Bool = since(1, default=False)
    log_dirs: Sequence[Uuid] = tagged(0, since=3, default=())
    cordoned_log_dirs: Sequence[Uuid] | None = tagged(1, since=4, default=None)


@message(key=1, versions="0", flexible="0+")
class UnregisterBrokerRecord(Message):
    """The registration of a broker is removed."""

    broker_id: Int32 = 0
    broker_epoch: Int64 = 0


@message(key=7, versions="0", flexible="0+")
class FenceBrokerRecord(Message):
    """A broker is fenced; written before `BrokerRegistrationChangeRecord` existed."""

    id: Int32 = 0
    epoch: Int64 = 0


@message(key=8, versions="0", flexible="0+")
class UnfenceBrokerRecord(Message):
    """A broker is unfenced; written before `BrokerRegistrationChangeRecord` existed."""

    id: Int32 = 0
    epoch: Int64 = 0


@message(key=17, versions="0-3", flexible="0+")
class BrokerRegistrationChangeRecord(Message):
    """A change of a registration; absent fields are unchanged."""

    broker_id: Int32 = 0
    broker_epoch: Int64 = 0
    fenced: Int8 = tagged(0, since=0, default=0)
    """1 fences the broker, -1 unfences it."""
    in_controlled_shutdown: Int8 = tagged(1, since=1, default=0)
    """1 if the controlled shutdown has started."""
    log_dirs: Sequence[Uuid] = tagged(2, since=2, default=())
    cordoned_log_dirs: Sequence[Uuid] | None = tagged(3, since=3, default=None)


@struct
class ControllerEndpoint:
    name: String = ""
    host: String = ""
    port: UInt16 = 0
    security_protocol: Int16 = 0


@struct
class ControllerFeature:
    name: String = ""
    min_supported_version: Int16 = 0
    max_supported_version: Int16 = 0


@message(key=27, versions="0", flexible="0+")
class RegisterControllerRecord(Message):
    """The registration of a new incarnation of a controller. It replaces any earlier one (KIP-919)."""

    controller_id: Int32 = 0
    incarnation_id: Uuid = ZERO_UUID
    zk_migration_ready: Bool = False
    end_points: Sequence[ControllerEndpoint] = ()
    features: Sequence[ControllerFeature] = ()


@message(key=29, versions="0", flexible="0+")
class UnregisterControllerRecord(Message):
    """The registration of a controller is removed; written by Kafka since 4.4."""

    controller_id: Int32 = 0


@message(key=20, versions="0", flexible="0+")
class NoOpRecord(Message):
    """No change. Kafka's active controller writes it periodically, to show that it can commit."""


@message(key=21, versions="0", flexible="0+")
class ZkMigrationRecord(Message):
    """The state of a migration from ZooKeeper; ignored."""

    zk_migration_state: Int8 = 0


@message(key=23, versions="0", flexible="0+")
class BeginTransactionRecord(Message):
    """The records that follow are applied at the end of the transaction (KIP-868)."""

    name: String | None = tagged(0, since=0, default=None)


@message(key=24, versions="0", flexible="0+")
class EndTransactionRecord(Message):
    """All records since the beginning of the transaction are applied."""


@message(key=25, versions="0", flexible="0+")
class AbortTransactionRecord(Message):
    """All records since the beginning of the transaction are discarded."""

    reason: String | None = tagged(0, since=0, default=None)


NODE_KINDS: tuple[type[Message], ...] = (
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
    FenceBrokerRecord,
    UnfenceBrokerRecord,
    BrokerRegistrationChangeRecord,
    RegisterControllerRecord,
    UnregisterControllerRecord,
    NoOpRecord,
    ZkMigrationRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    AbortTransactionRecord,
)
