"""The registration of a broker as an immutable value (KIP-631)."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace

from ottla.coordination.cluster.features import Levels
from ottla.coordination.cluster.node_records import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
)


class BrokerListener(NamedTuple):
    """The address of a broker for one listener name."""

    name: str
    host: str
    port: int
    security_protocol: int
    """0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL."""


class BrokerRegistration(Struct, frozen=True):
    """One incarnation of a broker."""

    broker_id: int
    epoch: int
    incarnation_id: UUID
    listeners: tuple[BrokerListener, ...]
    features: tuple[tuple[str, Levels], ...]
    rack: str | None = None
    fenced: bool = True
    """True if the broker has not caught up yet or sends no heartbeats: it leads nothing and clients do not see it."""
    in_controlled_shutdown: bool = False
    log_dirs: tuple[UUID, ...] = ()
    cordoned_log_dirs: tuple[UUID, ...] | None = None
    """Directories that get no new partitions without an explicit assignment (KIP-1066).

    None if the broker never reported any.
    """

    @property
    def has_open_directory(self) -> bool:
        """True if the broker has a directory that is not cordoned, whether it is available at present or not."""
        return not self.log_dirs or bool(set(self.log_dirs) - set(self.cordoned_log_dirs or ()))

    @property
    def can_get_replicas(self) -> bool:
        """True if the broker can get new replicas without an explicit assignment."""
        return self.has_open_directory and not self.in_controlled_shutdown

    def find_listener(self, name: str) -> BrokerListener | None:
        """Return the address for clients that connected to the listener of this name; None if there is none."""
        return next((each for each in self.listeners if each.name == name), None)


def read_registration(record: RegisterBrokerRecord) -> BrokerRegistration:
    """Return the registration in a RegisterBrokerRecord."""
    return BrokerRegistration(
        record.broker_id,
        record.broker_epoch,
        record.incarnation_id,
        tuple(BrokerListener(each.name, each.host, each.port, each.security_protocol) for each in record.end_points),
        tuple((each.name, Levels(each.min_supported_version, each.max_supported_version)) for each in record.features),
        record.rack,
        record.fenced,
        record.in_controlled_shutdown,
        tuple(record.log_dirs),
        None if record.cordoned_log_dirs is None else tuple(record.cordoned_log_dirs),
    )


def apply_change(registration: BrokerRegistration, record: BrokerRegistrationChangeRecord) -> BrokerRegistration:
    """Return the registration after a BrokerRegistrationChangeRecord."""
    cordoned = record.cordoned_log_dirs
    return replace(
        registration,
        fenced=registration.fenced if record.fenced == 0 else record.fenced > 0,
        in_controlled_shutdown=registration.in_controlled_shutdown or record.in_controlled_shutdown > 0,
        log_dirs=tuple(record.log_dirs) or registration.log_dirs,
        cordoned_log_dirs=registration.cordoned_log_dirs if cordoned is None else tuple(cordoned),
    )


def build_record(registration: BrokerRegistration) -> RegisterBrokerRecord:
    """Return the record that recreates the registration."""
    return RegisterBrokerRecord(
        registration.broker_id,
        incarnation_id=registration.incarnation_id,
        broker_epoch=registration.epoch,
        end_points=[BrokerEndpoint(*each) for each in registration.listeners],
        features=[BrokerFeature(name, *levels) for name, levels in registration.features],
        rack=registration.rack,
        fenced=registration.fenced,
        in_controlled_shutdown=registration.in_controlled_shutdown,
        log_dirs=registration.log_dirs,
        cordoned_log_dirs=registration.cordoned_log_dirs,
    )
