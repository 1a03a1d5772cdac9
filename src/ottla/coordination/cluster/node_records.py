"""The records of `__cluster_metadata` that tell of brokers and controllers, and of the log itself."""

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
    """A broker has started; whatever was known of its number before is over."""

    broker_id: Int32 = 0
    is_migrating_zk_broker: Bool = since(2, default=False)
    incarnation_id: Uuid = ZERO_UUID
    broker_epoch: Int64 = 0
    """The offset of this record, or of one before it that was written in the same incarnation."""
    end_points: Sequence[BrokerEndpoint] = ()
    features: Sequence[BrokerFeature] = ()
    rack: String | None = None
    fenced: Bool = True
    in_controlled_shutdown: Bool = since(1, default=False)
    log_dirs: Sequence[Uuid] = tagged(0, since=3, default=())
    cordoned_log_dirs: Sequence[Uuid] | None = tagged(1, since=4, default=None)


@message(key=1, versions="0", flexible="0+")
class UnregisterBrokerRecord(Message):
    """A broker is gone for good."""

    broker_id: Int32 = 0
    broker_epoch: Int64 = 0


@message(key=7, versions="0", flexible="0+")
class FenceBrokerRecord(Message):
    """A broker is not to be used; written before `BrokerRegistrationChangeRecord` was there."""

    id: Int32 = 0
    epoch: Int64 = 0


@message(key=8, versions="0", flexible="0+")
class UnfenceBrokerRecord(Message):
    """A broker is to be used; written before `BrokerRegistrationChangeRecord` was there."""

    id: Int32 = 0
    epoch: Int64 = 0


@message(key=17, versions="0-3", flexible="0+")
class BrokerRegistrationChangeRecord(Message):
    """Something of a broker is different from now on; what is not named is as it was."""

    broker_id: Int32 = 0
    broker_epoch: Int64 = 0
    fenced: Int8 = tagged(0, since=0, default=0)
    """1 from now on, -1 no more."""
    in_controlled_shutdown: Int8 = tagged(1, since=1, default=0)
    """1 from now on."""
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
    """A controller is there, at these places; whatever was known of its number before is over."""

    controller_id: Int32 = 0
    incarnation_id: Uuid = ZERO_UUID
    zk_migration_ready: Bool = False
    end_points: Sequence[ControllerEndpoint] = ()
    features: Sequence[ControllerFeature] = ()


@message(key=20, versions="0", flexible="0+")
class NoOpRecord(Message):
    """Nothing has happened: that there is such a record shows that the controller commits."""


@message(key=21, versions="0", flexible="0+")
class ZkMigrationRecord(Message):
    """How far the metadata had come from ZooKeeper, in a Kafka that still had one."""

    zk_migration_state: Int8 = 0


@message(key=23, versions="0", flexible="0+")
class BeginTransactionRecord(Message):
    """What follows counts once the transaction ends (KIP-868)."""

    name: String | None = tagged(0, since=0, default=None)


@message(key=24, versions="0", flexible="0+")
class EndTransactionRecord(Message):
    """All since the beginning of the transaction counts."""


@message(key=25, versions="0", flexible="0+")
class AbortTransactionRecord(Message):
    """Nothing since the beginning of the transaction counts."""

    reason: String | None = tagged(0, since=0, default=None)


NODE_KINDS: tuple[type[Message], ...] = (
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
    FenceBrokerRecord,
    UnfenceBrokerRecord,
    BrokerRegistrationChangeRecord,
    RegisterControllerRecord,
    NoOpRecord,
    ZkMigrationRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    AbortTransactionRecord,
)
