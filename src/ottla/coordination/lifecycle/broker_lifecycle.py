"""The lifecycle of one incarnation of a broker, as the controllers see it (KIP-631; Kafka's BrokerLifecycleManager). Pure.

    STARTING ──registered, metadata caught up──► RECOVERY ──logs recovered, unfenced──► RUNNING
                                                                                           │ shutdown requested
                          SHUTTING_DOWN ◄──all its partitions have other leaders──  PENDING_CONTROLLED_SHUTDOWN

A heartbeat is sent every `broker.heartbeat.interval.ms` (2 s), counted from one request to the next; sooner while the broker catches up with the
metadata or shuts down. One request is in flight at a time. If a controller does not answer, the request is repeated 2 s after it was
sent, or once it is given up if that is later; a newly elected controller is sent one at once. After 9 s without a heartbeat
(`broker.session.timeout.ms`) the controllers fence the broker, and unfence it with the next one.

The broker does not request to be unfenced before its logs are recovered. Cordoned directories (KIP-1066) are sent with the first heartbeat after which it
could be unfenced, so that no new partition is placed in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from uuid import UUID

from msgspec import Struct

from ottla.coordination.cluster.features import BROKER_LEVELS, Levels
from ottla.coordination.cluster.registration import BrokerListener, BrokerRegistration
from ottla.coordination.lifecycle import registration_errors
from ottla.coordination.lifecycle.events import (
    ControllerElected,
    ControllerFound,
    DirectoriesCordoned,
    DirectoryFailed,
    Event,
    HeartbeatResponseReceived,
    LifecycleAction,
    LifecycleRequestFailed,
    MetadataApplied,
    Note,
    Recover,
    Recovered,
    Registered,
    Send,
    Serve,
    ShutdownRequested,
    Stop,
    StopBroker,
)
from ottla.errors import ErrorCode, name_of
from ottla.protocol.messages import broker_registration
from ottla.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.protocol.messages.broker_registration import BrokerRegistrationRequest

CATCH_UP_HEARTBEAT_SECONDS = 0.01
SHUTDOWN_HEARTBEAT_SECONDS = 0.05
DUPLICATE_RETRY_SECONDS = 0.25
"""The first pause after DUPLICATE_BROKER_REGISTRATION, doubled up to the heartbeat interval.

Meanwhile the controller checks whether the earlier process has ended.
"""
SHUTDOWN_PATIENCE_SECONDS = 5.0
"""The time after which a broker that shuts down stops without an answer.

An election takes less, and 9 s after the last heartbeat the controllers fence the broker anyway.
"""
NEVER = float("inf")


class BrokerLifecycleState(IntEnum):
    """The states with the numbers of Kafka's metric `BrokerState`."""

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7


class Incarnation(Struct, frozen=True):
    """The fields of a broker's registration."""

    node_id: int
    cluster_id: str
    incarnation_id: UUID
    """A random id, new at each start."""
    listeners: tuple[BrokerListener, ...]
    log_dirs: tuple[UUID, ...]
    cordoned_log_dirs: tuple[UUID, ...]
    rack: str | None = None
    previous_epoch: int = -1
    """The broker epoch that the last clean shutdown stored."""
    features: Mapping[str, Levels] | None = None
    """None for every feature that this version supports."""


class LifecycleTimeouts(Struct, frozen=True):
    """Kafka's `broker.heartbeat.interval.ms`, `initial.broker.registration.timeout.ms` and `log.dir.failure.timeout.ms`, in seconds."""

    heartbeat: float = 2.0
    registration: float = 60.0
    directory_failure: float = 30.0


class BrokerLifecycle:
    """Decides on the next request to the active controller, and when it is sent."""

    def __init__(self, incarnation: Incarnation, spans: LifecycleTimeouts, now: float) -> None:
        self.state = BrokerLifecycleState.STARTING
        self.epoch = -1
        """The broker's epoch, once it is registered."""
        self.fenced = True
        self.due = now + spans.registration
        """The time of the next request; `TimePassed` must be handled then."""
        self._incarnation = incarnation
        self._spans = spans
        self._give_up_at = now + spans.registration
        self._knows_controller = False
        """True if the active controller is known."""
        self._in_flight = False
        self._sent_at = now
        """The time of the last request."""
        self._last_heartbeat_at = now
        """The time of the last successful heartbeat response."""
        self._send_when_answered = False
        """True if the next request is to be sent as soon as the present one is answered."""
        self._recovered = False
        self._metadata_offset = -1
        self._failed_directories: dict[UUID, float] = {}
        """The failed directories, each with the time by which the controllers must have been notified; NEVER if they have been."""
        self._cordoned = incarnation.cordoned_log_dirs
        self._reported_failed: tuple[UUID, ...] = ()
        """The failed directories that the heartbeat in flight reports."""
        self._duplicate_retry_seconds = DUPLICATE_RETRY_SECONDS
        self._duplicate = ""
        """The error message if another broker with the same node id keeps sending heartbeats."""

    def handle(self, event: Event, now: float) -> list[LifecycleAction]:
        """Return the effects of an event."""
        effects = self._handle_event(event, now)
        if self.state is not BrokerLifecycleState.SHUTTING_DOWN and not self._in_flight and self.due <= now:
            effects += self._send_request(now)
        return effects

    def _handle_event(self, event: Event, now: float) -> list[LifecycleAction]:
        match event:
            case ControllerFound():
                return self._handle_controller_found(event, now)
            case Registered():
                return self._handle_registration_response(event, now)
            case HeartbeatResponseReceived():
                return self._handle_heartbeat_response(event, now)
            case LifecycleRequestFailed():
                return self._handle_failed_request(now)
            case ControllerElected() if self._knows_controller:
                self._send_soon(now)
            case MetadataApplied():
                self._handle_applied_metadata(event, now)
            case Recovered():
                self._recovered = True
                self._send_soon(now)
            case DirectoryFailed() | DirectoriesCordoned():
                self._handle_directories(event, now)
            case ShutdownRequested():
                return self._start_shutdown(now)
        return []

    def _handle_directories(self, event: DirectoryFailed | DirectoriesCordoned, now: float) -> None:
        """Report a failed directory, or other cordoned ones than before, with the next heartbeat."""
        if isinstance(event, DirectoryFailed):
            self._failed_directories.setdefault(event.directory, now + self._spans.directory_failure)
        elif event.directories == self._cordoned:
            return
        else:
            self._cordoned = event.directories
        if self.epoch >= 0:
            self._send_soon(now)

    def _handle_applied_metadata(self, event: MetadataApplied, now: float) -> None:
        self._metadata_offset = event.offset
        if event.awaited and self.state is BrokerLifecycleState.RUNNING:
            self._send_soon(now)

    def _handle_controller_found(self, event: ControllerFound, now: float) -> list[LifecycleAction]:
        """Start to register, unless the cluster runs features that this broker does not support."""
        error = registration_errors.unsupported_features(event.finalized)
        if error is not None:
            self.state = BrokerLifecycleState.SHUTTING_DOWN
            return [StopBroker(error)]
        if not self._knows_controller:
            self._knows_controller, self.due = True, now
        return []

    def _send_request(self, now: float) -> list[LifecycleAction]:
        if self.epoch < 0 and now >= self._give_up_at:
            self.state = BrokerLifecycleState.SHUTTING_DOWN
            return [StopBroker(self._not_registered())]
        if self.epoch >= 0 and now >= min(self._failed_directories.values(), default=NEVER):
            self.state = BrokerLifecycleState.SHUTTING_DOWN
            return [StopBroker(self._unreported_failure())]
        self._in_flight, self._sent_at, self.due = True, now, NEVER
        return [Send(self._registration() if self.epoch < 0 else self._heartbeat())]

    def _registration(self) -> BrokerRegistrationRequest:
        broker = self._incarnation
        features = BROKER_LEVELS if broker.features is None else broker.features
        return BrokerRegistrationRequest(
            broker.node_id,
            broker.cluster_id,
            broker.incarnation_id,
            [broker_registration.Listener(*each) for each in broker.listeners],
            [broker_registration.Feature(name, *levels) for name, levels in features.items()],
            broker.rack,
            log_dirs=sorted(broker.log_dirs),
            previous_broker_epoch=broker.previous_epoch,
        )

    def _heartbeat(self) -> BrokerHeartbeatRequest:
        self._reported_failed = tuple(sorted(self._failed_directories))
        return BrokerHeartbeatRequest(
            self._incarnation.node_id,
            self.epoch,
            self._metadata_offset,
            want_fence=not self._recovered,
            want_shut_down=self.state is BrokerLifecycleState.PENDING_CONTROLLED_SHUTDOWN,
            offline_log_dirs=self._reported_failed,
            # Before it has caught up, some controllers may not have the registration in their logs yet.
            cordoned_log_dirs=None if self.state is BrokerLifecycleState.STARTING else self._cordoned,
        )

    def _handle_registration_response(self, event: Registered, now: float) -> list[LifecycleAction]:
        code = event.response.error_code
        if not code:
            self.epoch = event.response.broker_epoch
            self._schedule_next(now, now)
            return [Note(f"registered as broker {self._incarnation.node_id} with epoch {self.epoch}", is_expected=True)]
        error = self._permanent_error(code, event.others)
        if error is not None:
            self.state = BrokerLifecycleState.SHUTTING_DOWN
            return [StopBroker(error)]
        if code == ErrorCode.DUPLICATE_BROKER_REGISTRATION:
            pause = min(self._duplicate_retry_seconds, self._spans.heartbeat)
            self._duplicate_retry_seconds = 2 * pause
            self._schedule_next(now + pause, now)
            return self._handle_duplicate_registration(event.others)
        self._schedule_next(now + self._spans.heartbeat, now)
        return [Note(f"registration failed, retrying: error={name_of(code)}")]

    def _permanent_error(self, code: int, others: Mapping[int, BrokerRegistration]) -> str | None:
        """Return the error message for an error that a retry cannot resolve."""
        if code == ErrorCode.INCONSISTENT_CLUSTER_ID:
            return f"the controllers do not belong to cluster {self._incarnation.cluster_id} of meta.properties"
        if code == ErrorCode.INVALID_REGISTRATION:
            return registration_errors.reserved_directory_id(
                self._incarnation.log_dirs
            ) or registration_errors.directory_conflict(self._incarnation.node_id, self._incarnation.log_dirs, others)
        return None

    def _handle_duplicate_registration(self, others: Mapping[int, BrokerRegistration]) -> list[LifecycleAction]:
        """Handle a duplicate registration: the other process may be this broker's previous run, or a running broker."""
        reported, self._duplicate = (
            self._duplicate,
            registration_errors.node_id_conflict(self._incarnation.node_id, others),
        )
        if reported:
            return []
        return [
            Note(
                f"another broker {self._incarnation.node_id} sent a heartbeat recently: waiting until its "
                "broker.session.timeout.ms has passed; if it still runs, set another node.id for this one"
            )
        ]

    def _handle_heartbeat_response(self, event: HeartbeatResponseReceived, now: float) -> list[LifecycleAction]:
        answer = event.response
        if answer.error_code == ErrorCode.STALE_BROKER_EPOCH:
            self.state = BrokerLifecycleState.SHUTTING_DOWN
            return [
                StopBroker(
                    f"another process has registered as broker {self._incarnation.node_id}, or that broker was unregistered, so the "
                    "controllers reject this one: set another node.id for one of them, or restart this one",
                    is_registration_lost=True,
                )
            ]
        if answer.error_code:
            self._schedule_next(self._next_heartbeat, now)
            return [Note(f"heartbeat rejected: error={name_of(answer.error_code)}")]
        self._last_heartbeat_at = now
        self._failed_directories |= dict.fromkeys(self._reported_failed, NEVER)
        fenced, self.fenced = self.fenced, answer.is_fenced
        if self.state is BrokerLifecycleState.STARTING:
            return self._continue_startup(now, caught_up=answer.is_caught_up)
        if self.state is BrokerLifecycleState.PENDING_CONTROLLED_SHUTDOWN:
            return self._continue_shutdown(now, may_stop=answer.should_shut_down)
        is_unfenceable = self.state is BrokerLifecycleState.RECOVERY and self._recovered and answer.is_fenced
        self._schedule_next(now + CATCH_UP_HEARTBEAT_SECONDS if is_unfenceable else self._next_heartbeat, now)
        if answer.is_fenced:
            return [] if fenced else [Note("fenced by the controllers: clients use other brokers until it is unfenced")]
        self.state = BrokerLifecycleState.RUNNING
        return [Serve()] if fenced else []

    def _continue_startup(self, now: float, *, caught_up: bool) -> list[LifecycleAction]:
        self._schedule_next(now + CATCH_UP_HEARTBEAT_SECONDS, now)
        if not caught_up:
            return []
        self.state = BrokerLifecycleState.RECOVERY
        return [Recover()]

    def _continue_shutdown(self, now: float, *, may_stop: bool) -> list[LifecycleAction]:
        self._schedule_next(now + SHUTDOWN_HEARTBEAT_SECONDS, now)
        if not may_stop:
            return []
        self.state = BrokerLifecycleState.SHUTTING_DOWN
        return [Stop()]

    def _handle_failed_request(self, now: float) -> list[LifecycleAction]:
        """Retry. A broker that shuts down and finds no controller stops without moving its leaderships."""
        if self.state is not BrokerLifecycleState.PENDING_CONTROLLED_SHUTDOWN:
            self._schedule_next(self._next_heartbeat, now)
            return []
        give_up_at = self._last_heartbeat_at + SHUTDOWN_PATIENCE_SECONDS
        self._schedule_next(min(self._next_heartbeat, max(give_up_at, now)), now)
        if now < give_up_at:
            return []
        self.state = BrokerLifecycleState.SHUTTING_DOWN
        return [
            Note("no controller responds, so no leadership can be moved: the broker stops without that"),
            Stop(),
        ]

    def _start_shutdown(self, now: float) -> list[LifecycleAction]:
        """Start a controlled shutdown; a broker that was never unfenced stops at once."""
        if self.state is BrokerLifecycleState.PENDING_CONTROLLED_SHUTDOWN:
            return []
        if self.state is not BrokerLifecycleState.RUNNING:
            self.state = BrokerLifecycleState.SHUTTING_DOWN
            return [Stop()]
        self.state = BrokerLifecycleState.PENDING_CONTROLLED_SHUTDOWN
        self._send_soon(now)
        return []

    @property
    def _next_heartbeat(self) -> float:
        return self._sent_at + self._spans.heartbeat

    def _schedule_next(self, due: float, now: float) -> None:
        self._in_flight = False
        self.due, self._send_when_answered = now if self._send_when_answered else due, False

    def _send_soon(self, now: float) -> None:
        if self._in_flight:
            self._send_when_answered = True
        elif self.due < NEVER:
            self.due = now

    def _not_registered(self) -> str:
        return self._duplicate or (
            f"no controller has registered broker {self._incarnation.node_id} within {self._spans.registration:.0f} s "
            "(initial.broker.registration.timeout.ms): check controller.quorum.bootstrap.servers, and whether another "
            "broker with that node.id runs"
        )

    def _unreported_failure(self) -> str:
        return (
            f"the controllers could not be notified within {self._spans.directory_failure:.0f} s (log.dir.failure.timeout.ms) that a "
            "log directory has failed: the broker stops, so that other brokers become leaders of its partitions"
        )

    def check(self) -> None:
        assert (self.epoch >= 0) or self.state in (BrokerLifecycleState.STARTING, BrokerLifecycleState.SHUTTING_DOWN)
        assert not (self._in_flight and self.due < NEVER)
        assert self.fenced or self.epoch >= 0
