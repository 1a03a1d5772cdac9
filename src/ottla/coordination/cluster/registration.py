"""A broker as the controllers know it: values only, replaced when something changes."""

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


class Listener(NamedTuple):
    """Where a broker is reached."""

    name: str
    host: str
    port: int
    security_protocol: int
    """PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL, counted from 0."""


class Registration(Struct, frozen=True):
    """One incarnation of a broker."""

    broker_id: int
    epoch: int
    incarnation_id: UUID
    listeners: tuple[Listener, ...]
    features: tuple[tuple[str, Levels], ...]
    rack: str | None = None
    fenced: bool = True
    """Whether it is not to be used: its heartbeats stopped, or it has not caught up yet."""
    in_controlled_shutdown: bool = False
    log_dirs: tuple[UUID, ...] = ()
    cordoned_log_dirs: tuple[UUID, ...] | None = None
    """Directories in which no partition is put unless somebody says so (KIP-1066); None where nothing was told of it."""

    @property
    def is_open(self) -> bool:
        """Whether it has a directory that is not cordoned; whoever is away or about to stop may have one, too."""
        return not self.log_dirs or bool(set(self.log_dirs) - set(self.cordoned_log_dirs or ()))

    @property
    def takes_partitions(self) -> bool:
        """Whether something may be put on it now that nobody has said a place for."""
        return self.is_open and not self.in_controlled_shutdown

    def listener(self, name: str) -> Listener | None:
        """Where it is reached by whoever came in by the listener of that name."""
        return next((each for each in self.listeners if each.name == name), None)


def registered(record: RegisterBrokerRecord) -> Registration:
    """A broker as it registered."""
    return Registration(
        record.broker_id,
        record.broker_epoch,
        record.incarnation_id,
        tuple(Listener(each.name, each.host, each.port, each.security_protocol) for each in record.end_points),
        tuple((each.name, Levels(each.min_supported_version, each.max_supported_version)) for each in record.features),
        record.rack,
        record.fenced,
        record.in_controlled_shutdown,
        tuple(record.log_dirs),
        None if record.cordoned_log_dirs is None else tuple(record.cordoned_log_dirs),
    )


def changed(registration: Registration, record: BrokerRegistrationChangeRecord) -> Registration:
    """A broker after a change of it."""
    cordoned = record.cordoned_log_dirs
    return replace(
        registration,
        fenced=registration.fenced if record.fenced == 0 else record.fenced > 0,
        in_controlled_shutdown=registration.in_controlled_shutdown or record.in_controlled_shutdown > 0,
        log_dirs=tuple(record.log_dirs) or registration.log_dirs,
        cordoned_log_dirs=registration.cordoned_log_dirs if cordoned is None else tuple(cordoned),
    )


def registration_record(registration: Registration) -> RegisterBrokerRecord:
    """A broker as it is."""
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
