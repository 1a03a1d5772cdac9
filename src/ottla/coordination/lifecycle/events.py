"""What happens to a broker that is one of a cluster, and what it wants done about it."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from msgspec import Struct, field

from ottla.coordination.cluster.registration import Registration
from ottla.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse


class ControllerFound(Struct, frozen=True):
    """It is known who the active controller is, and what the cluster runs."""

    finalized: Mapping[str, int]
    """Levels of features."""


class ControllerElected(Struct, frozen=True):
    """Somebody became the active controller, perhaps who was it before: it has heard of this broker only what the log says."""


class Registered(Struct, frozen=True):
    """The answer to a registration."""

    response: BrokerRegistrationResponse
    others: Mapping[int, Registration] = field(default_factory=dict)
    """Who is registered, as far as the metadata is known: it says who stands in the way."""


class Beaten(Struct, frozen=True):
    """The answer to a heartbeat."""

    response: BrokerHeartbeatResponse


class Unanswered(Struct, frozen=True):
    """The connection broke, or nothing came in time."""


class MetadataApplied(Struct, frozen=True):
    """The broker acts on the metadata up to this offset, which is in it."""

    offset: int
    awaited: bool = False
    """Whether a broker hands over, which the controllers let go when all the others have said this."""


class Recovered(Struct, frozen=True):
    """The broker's logs are in order: it can be used."""


class DirectoryFailed(Struct, frozen=True):
    """A directory of the broker is not there any more, with all the copies in it."""

    directory: UUID


class StopWanted(Struct, frozen=True):
    """The broker is to end."""


class TimePassed(Struct, frozen=True):
    """It is later than it was."""


Event = (
    ControllerFound
    | Registered
    | Beaten
    | Unanswered
    | ControllerElected
    | MetadataApplied
    | Recovered
    | DirectoryFailed
    | StopWanted
    | TimePassed
)


class Send(Struct, frozen=True):
    """To the active controller, whoever that is by now; the answer, or that there is none, is the next event."""

    request: BrokerRegistrationRequest | BrokerHeartbeatRequest


class Recover(Struct, frozen=True):
    """The metadata is known as far as it was when the broker registered: see to the logs."""


class Serve(Struct, frozen=True):
    """The controllers have let the broker in; they may have sent it away before."""


class Note(Struct, frozen=True):
    """A person may want to know."""

    sentence: str
    is_expected: bool = False
    """Whether it is so in each life."""


class Stop(Struct, frozen=True):
    """Nobody needs the broker any more: end."""


class Fail(Struct, frozen=True):
    """The broker cannot be a member of the cluster: stop it with this error."""

    sentence: str
    is_registration_lost: bool = False
    """True if the registration was ended while the broker ran. A controller in the same process is not affected."""


Wish = Send | Recover | Serve | Note | Stop | Fail
