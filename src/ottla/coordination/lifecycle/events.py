"""What happens to a broker that is one of a cluster, and what it wants done about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from ottla.coordination.cluster.registration import Registration
from ottla.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse


@dataclass(frozen=True, slots=True)
class ControllerFound:
    """It is known who the active controller is, and what the cluster runs."""

    finalized: Mapping[str, int]
    """Levels of features."""


@dataclass(frozen=True, slots=True)
class ControllerElected:
    """Somebody became the active controller, perhaps who was it before: it has heard of this broker only what the log says."""


@dataclass(frozen=True, slots=True)
class Registered:
    """The answer to a registration."""

    response: BrokerRegistrationResponse
    others: Mapping[int, Registration] = field(default_factory=dict)
    """Who is registered, as far as the metadata is known: it says who stands in the way."""


@dataclass(frozen=True, slots=True)
class Beaten:
    """The answer to a heartbeat."""

    response: BrokerHeartbeatResponse


@dataclass(frozen=True, slots=True)
class Unanswered:
    """The connection broke, or nothing came in time."""


@dataclass(frozen=True, slots=True)
class MetadataApplied:
    """The broker acts on the metadata up to this offset, which is in it."""

    offset: int
    awaited: bool = False
    """Whether a broker hands over, which the controllers let go when all the others have said this."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """The broker's logs are in order: it can be used."""


@dataclass(frozen=True, slots=True)
class DirectoryFailed:
    """A directory of the broker is not there any more, with all the copies in it."""

    directory: UUID


@dataclass(frozen=True, slots=True)
class StopWanted:
    """The broker is to end."""


@dataclass(frozen=True, slots=True)
class TimePassed:
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


@dataclass(frozen=True, slots=True)
class Send:
    """To the active controller, whoever that is by now; the answer, or that there is none, is the next event."""

    request: BrokerRegistrationRequest | BrokerHeartbeatRequest


@dataclass(frozen=True, slots=True)
class Recover:
    """The metadata is known as far as it was when the broker registered: see to the logs."""


@dataclass(frozen=True, slots=True)
class Serve:
    """The controllers have let the broker in; they may have sent it away before."""


@dataclass(frozen=True, slots=True)
class Note:
    """A person may want to know."""

    sentence: str
    is_expected: bool = False
    """Whether it is so in each life."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Nobody needs the broker any more: end."""


@dataclass(frozen=True, slots=True)
class Fail:
    """The broker cannot be one of the cluster's; end, and say why."""

    sentence: str


Wish = Send | Recover | Serve | Note | Stop | Fail
