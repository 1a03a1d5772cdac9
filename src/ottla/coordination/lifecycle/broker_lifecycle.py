"""The life of one incarnation of a broker, as its controllers see it (KIP-631). Pure.

    STARTING ──registered, metadata known──► RECOVERY ──logs in order, let in──► RUNNING
                                                                                    │ somebody wants it to end
                          SHUTTING_DOWN ◄──all it led is led elsewhere──  PENDING_CONTROLLED_SHUTDOWN

It is heard of every two seconds, counted from question to question, and quicker where somebody waits: while it catches up, and
while it hands over. One question is under way at a time. A controller that does not answer is asked again two seconds after it was
asked first, or as soon as it is given up after that; a new one is told at once. After nine seconds without a heartbeat the controllers
fence the broker, and let it in again with the next.

It never says that it is ready before its logs are, and tells of cordoned directories (KIP-1066) with the first heartbeat that
could let it in, so that no partition is put here that nobody asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from uuid import UUID

from msgspec import Struct

from ottla.coordination.cluster.features import OF_A_BROKER, Levels
from ottla.coordination.cluster.registration import Listener, Registration
from ottla.coordination.lifecycle import joining, misfits
from ottla.coordination.lifecycle.events import (
    Beaten,
    ControllerElected,
    ControllerFound,
    DirectoryFailed,
    Event,
    Fail,
    MetadataApplied,
    Note,
    Recover,
    Recovered,
    Registered,
    Send,
    Serve,
    Stop,
    StopWanted,
    Unanswered,
    Wish,
)
from ottla.errors import ErrorCode, name_of
from ottla.protocol.messages import broker_registration
from ottla.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.protocol.messages.broker_registration import BrokerRegistrationRequest

CATCHING_UP_SECONDS = 0.01
HANDING_OVER_SECONDS = 0.05
DUPLICATE_RETRY_SECONDS = 0.25
"""The first pause after DUPLICATE_BROKER_REGISTRATION, doubled up to the heartbeat interval: the controller checks meanwhile whether the earlier process has ended."""
UNHEARD_SECONDS = 5.0
"""How long who hands over goes on without an answer: an election takes less, and nine seconds after the last the controllers have it fenced anyway."""
NEVER = float("inf")


class BrokerState(IntEnum):
    """By the numbers that Kafka's metrics have for them."""

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7


class Incarnation(Struct, frozen=True):
    """What a broker says of itself when it registers."""

    node_id: int
    cluster_id: str
    incarnation_id: UUID
    """Drawn at each start."""
    listeners: tuple[Listener, ...]
    log_dirs: tuple[UUID, ...]
    cordoned_log_dirs: tuple[UUID, ...]
    rack: str | None = None
    previous_epoch: int = -1
    """What the last clean stop left behind."""
    features: Mapping[str, Levels] | None = None
    """None is all that can be run here."""


class Spans(Struct, frozen=True):
    """Kafka's `broker.heartbeat.interval.ms`, `initial.broker.registration.timeout.ms` and `log.dir.failure.timeout.ms`, in seconds."""

    heartbeat: float = 2.0
    registration: float = 60.0
    directory_failure: float = 30.0


class BrokerLifecycle:
    """What to tell the controllers next, and when."""

    def __init__(self, who: Incarnation, spans: Spans, now: float) -> None:
        self.state = BrokerState.STARTING
        self.epoch = -1
        """The broker's epoch, once it is registered."""
        self.fenced = True
        self.due = now + spans.registration
        """When to speak next; `TimePassed` is to come then."""
        self._who = who
        self._spans = spans
        self._give_up_at = now + spans.registration
        self._known = False
        """Whether there is a controller to ask."""
        self._asking = False
        self._asked_at = now
        """When the last question went out."""
        self._heard_at = now
        """When the last heartbeat was answered."""
        self._soon = False
        """Whether to speak as soon as the answer that is waited for is there."""
        self._recovered = False
        self._metadata_offset = -1
        self._failed: dict[UUID, float] = {}
        """Directories that have failed, and until when the controllers have to have heard it; for ever where they have."""
        self._told: tuple[UUID, ...] = ()
        """What the heartbeat that is under way says has failed."""
        self._duplicate_retry_seconds = DUPLICATE_RETRY_SECONDS
        self._duplicate = ""
        """What to say where another broker of that number goes on being heard."""

    def handle(self, event: Event, now: float) -> list[Wish]:
        """What is wanted, of what has happened."""
        wishes = self._taken(event, now)
        if self.state is not BrokerState.SHUTTING_DOWN and not self._asking and self.due <= now:
            wishes += self._speak(now)
        return wishes

    def _taken(self, event: Event, now: float) -> list[Wish]:
        match event:
            case ControllerFound():
                return self._found(event, now)
            case Registered():
                return self._registered(event, now)
            case Beaten():
                return self._beaten(event, now)
            case Unanswered():
                return self._unanswered(now)
            case ControllerElected() if self._known:
                self._hurry(now)
            case MetadataApplied():
                self._applied(event, now)
            case Recovered():
                self._recovered = True
                self._hurry(now)
            case DirectoryFailed():
                self._failed.setdefault(event.directory, now + self._spans.directory_failure)
                self._hurry(now)
            case StopWanted():
                return self._leave(now)
        return []

    def _applied(self, event: MetadataApplied, now: float) -> None:
        self._metadata_offset = event.offset
        if event.awaited and self.state is BrokerState.RUNNING:
            self._hurry(now)

    def _found(self, event: ControllerFound, now: float) -> list[Wish]:
        """Ask to be let in, or do not, where that could not be meant."""
        sentence = joining.refusal(event.finalized)
        if sentence is not None:
            self.state = BrokerState.SHUTTING_DOWN
            return [Fail(sentence)]
        if not self._known:
            self._known, self.due = True, now
        return []

    def _speak(self, now: float) -> list[Wish]:
        if self.epoch < 0 and now >= self._give_up_at:
            self.state = BrokerState.SHUTTING_DOWN
            return [Fail(self._not_registered())]
        if self.epoch >= 0 and now >= min(self._failed.values(), default=NEVER):
            self.state = BrokerState.SHUTTING_DOWN
            return [Fail(self._unheard())]
        self._asking, self._asked_at, self.due = True, now, NEVER
        return [Send(self._registration() if self.epoch < 0 else self._heartbeat())]

    def _registration(self) -> BrokerRegistrationRequest:
        who = self._who
        features = OF_A_BROKER if who.features is None else who.features
        return BrokerRegistrationRequest(
            who.node_id,
            who.cluster_id,
            who.incarnation_id,
            [broker_registration.Listener(*each) for each in who.listeners],
            [broker_registration.Feature(name, *levels) for name, levels in features.items()],
            who.rack,
            log_dirs=sorted(who.log_dirs),
            previous_broker_epoch=who.previous_epoch,
        )

    def _heartbeat(self) -> BrokerHeartbeatRequest:
        self._told = tuple(sorted(self._failed))
        return BrokerHeartbeatRequest(
            self._who.node_id,
            self.epoch,
            self._metadata_offset,
            want_fence=not self._recovered,
            want_shut_down=self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN,
            offline_log_dirs=self._told,
            # Before it has caught up, the controllers' own log of the registration may not be with them all.
            cordoned_log_dirs=None if self.state is BrokerState.STARTING else self._who.cordoned_log_dirs,
        )

    def _registered(self, event: Registered, now: float) -> list[Wish]:
        code = event.response.error_code
        if not code:
            self.epoch = event.response.broker_epoch
            self._answered(now, now)
            return [Note(f"registered as broker {self._who.node_id} with epoch {self.epoch}", is_expected=True)]
        misfit = self._misfit(code, event.others)
        if misfit is not None:
            self.state = BrokerState.SHUTTING_DOWN
            return [Fail(misfit)]
        if code == ErrorCode.DUPLICATE_BROKER_REGISTRATION:
            pause = min(self._duplicate_retry_seconds, self._spans.heartbeat)
            self._duplicate_retry_seconds = 2 * pause
            self._answered(now + pause, now)
            return self._wait_for_silence(event.others)
        self._answered(now + self._spans.heartbeat, now)
        return [Note(f"not registered yet: the controller says {name_of(code)}")]

    def _misfit(self, code: int, others: Mapping[int, Registration]) -> str | None:
        """What will not fit however often it is tried."""
        if code == ErrorCode.INCONSISTENT_CLUSTER_ID:
            return f"the controllers are not those of cluster {self._who.cluster_id}, which is in meta.properties"
        if code == ErrorCode.INVALID_REGISTRATION:
            return misfits.reserved_directory(self._who.log_dirs) or misfits.taken_directory(
                self._who.node_id, self._who.log_dirs, others
            )
        return None

    def _wait_for_silence(self, others: Mapping[int, Registration]) -> list[Wish]:
        """Another of that number was heard of: it may be this one's last run, or a broker that runs."""
        told, self._duplicate = self._duplicate, misfits.taken_number(self._who.node_id, others)
        if told:
            return []
        return [
            Note(
                f"another broker {self._who.node_id} was heard of a moment ago: waiting until it has been silent for "
                "broker.session.timeout.ms; if it still runs, give this one a node.id of its own"
            )
        ]

    def _beaten(self, event: Beaten, now: float) -> list[Wish]:
        answer = event.response
        if answer.error_code == ErrorCode.STALE_BROKER_EPOCH:
            self.state = BrokerState.SHUTTING_DOWN
            return [
                Fail(
                    f"another process has registered as broker {self._who.node_id}, or that was unregistered, so the controllers hear "
                    "this one no more: give one of them another node.id, or start this one again",
                    is_registration_lost=True,
                )
            ]
        if answer.error_code:
            self._answered(self._next_beat, now)
            return [Note(f"a heartbeat was refused: the controller says {name_of(answer.error_code)}")]
        self._heard_at = now
        self._failed |= dict.fromkeys(self._told, NEVER)
        fenced, self.fenced = self.fenced, answer.is_fenced
        if self.state is BrokerState.STARTING:
            return self._while_starting(now, caught_up=answer.is_caught_up)
        if self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            return self._while_leaving(now, may_go=answer.should_shut_down)
        waits = self.state is BrokerState.RECOVERY and self._recovered and answer.is_fenced
        self._answered(now + CATCHING_UP_SECONDS if waits else self._next_beat, now)
        if answer.is_fenced:
            return (
                []
                if fenced
                else [Note("fenced by the controllers: clients are sent elsewhere until it is let in again")]
            )
        self.state = BrokerState.RUNNING
        return [Serve()] if fenced else []

    def _while_starting(self, now: float, *, caught_up: bool) -> list[Wish]:
        self._answered(now + CATCHING_UP_SECONDS, now)
        if not caught_up:
            return []
        self.state = BrokerState.RECOVERY
        return [Recover()]

    def _while_leaving(self, now: float, *, may_go: bool) -> list[Wish]:
        self._answered(now + HANDING_OVER_SECONDS, now)
        if not may_go:
            return []
        self.state = BrokerState.SHUTTING_DOWN
        return [Stop()]

    def _unanswered(self, now: float) -> list[Wish]:
        """Ask again; who hands over and finds nobody to hand over to just goes."""
        if self.state is not BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            self._answered(self._next_beat, now)
            return []
        give_up_at = self._heard_at + UNHEARD_SECONDS
        self._answered(min(self._next_beat, max(give_up_at, now)), now)
        if now < give_up_at:
            return []
        self.state = BrokerState.SHUTTING_DOWN
        return [
            Note("no controller answers, so nothing that this broker leads can be handed over: it ends without that"),
            Stop(),
        ]

    def _leave(self, now: float) -> list[Wish]:
        """Hand over what is led, if anything can be; who was never let in just goes."""
        if self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            return []
        if self.state is not BrokerState.RUNNING:
            self.state = BrokerState.SHUTTING_DOWN
            return [Stop()]
        self.state = BrokerState.PENDING_CONTROLLED_SHUTDOWN
        self._hurry(now)
        return []

    @property
    def _next_beat(self) -> float:
        return self._asked_at + self._spans.heartbeat

    def _answered(self, due: float, now: float) -> None:
        self._asking = False
        self.due, self._soon = now if self._soon else due, False

    def _hurry(self, now: float) -> None:
        if self._asking:
            self._soon = True
        elif self.due < NEVER:
            self.due = now

    def _not_registered(self) -> str:
        return self._duplicate or (
            f"no controller has registered broker {self._who.node_id} within {self._spans.registration:.0f} s "
            "(initial.broker.registration.timeout.ms): look at controller.quorum.bootstrap.servers, and whether another "
            "broker of that node.id runs"
        )

    def _unheard(self) -> str:
        return (
            f"the controllers have not heard within {self._spans.directory_failure:.0f} s (log.dir.failure.timeout.ms) that a "
            "directory has failed, and nobody else leads what it had: the broker stops, so that others do"
        )

    def check(self) -> None:
        assert (self.epoch >= 0) or self.state in (BrokerState.STARTING, BrokerState.SHUTTING_DOWN)
        assert not (self._asking and self.due < NEVER)
        assert self.fenced or self.epoch >= 0
