"""The events and the effects of a broker's lifecycle."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from msgspec import Struct, field

from ottla.coordination.cluster.registration import BrokerRegistration
from ottla.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse


class ControllerFound(Struct, frozen=True):
    """The active controller is known, and the finalized features of the cluster."""

    finalized: Mapping[str, int]
    """Levels of features."""


class ControllerElected(Struct, frozen=True):
    """A controller was elected, possibly the same one again: of this broker it knows only what is in the log."""


class Registered(Struct, frozen=True):
    """The response to a registration was received."""

    response: BrokerRegistrationResponse
    others: Mapping[int, BrokerRegistration] = field(default_factory=dict)
    """The other registered brokers, as far as the metadata is known, to name the broker that causes a conflict."""


class HeartbeatResponseReceived(Struct, frozen=True):
    """The response to a heartbeat was received."""

    response: BrokerHeartbeatResponse


class LifecycleRequestFailed(Struct, frozen=True):
    """The connection failed, or no response arrived in time."""


class MetadataApplied(Struct, frozen=True):
    """The broker has applied the metadata up to and including this offset."""

    offset: int
    awaited: bool = False
    """True if a broker shuts down, and the controllers wait until every other broker has applied this."""


class Recovered(Struct, frozen=True):
    """The broker's logs are recovered."""


class DirectoryFailed(Struct, frozen=True):
    """A log directory of the broker failed, with all replicas in it."""

    directory: UUID


class DirectoriesCordoned(Struct, frozen=True):
    """The cordoned log directories are others now (KIP-1066)."""

    directories: tuple[UUID, ...]


class ShutdownRequested(Struct, frozen=True):
    pass


class LifecycleTick(Struct, frozen=True):
    pass


Event = (
    ControllerFound
    | Registered
    | HeartbeatResponseReceived
    | LifecycleRequestFailed
    | ControllerElected
    | MetadataApplied
    | Recovered
    | DirectoryFailed
    | DirectoriesCordoned
    | ShutdownRequested
    | LifecycleTick
)


class Send(Struct, frozen=True):
    """Send a request to the active controller at that time. The response, or its failure, is the next event."""

    request: BrokerRegistrationRequest | BrokerHeartbeatRequest


class Recover(Struct, frozen=True):
    """Recover the logs: the metadata is known up to the broker's registration."""


class Serve(Struct, frozen=True):
    """The controllers have unfenced the broker, for the first time or again."""


class Note(Struct, frozen=True):
    text: str
    is_expected: bool = False
    """True if it happens in each start."""


class Stop(Struct, frozen=True):
    """The controlled shutdown is complete, or no controller is available for one."""


class StopBroker(Struct, frozen=True):
    """The broker cannot be a member of the cluster: stop it with this error."""

    error: str
    is_registration_lost: bool = False
    """True if the registration was ended while the broker ran. A controller in the same process is not affected."""


LifecycleAction = Send | Recover | Serve | Note | Stop | StopBroker
