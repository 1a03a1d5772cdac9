"""The state machine of a client that pushes metrics. Pure: time and randomness are arguments.

SUBSCRIPTION_NEEDED ──► SUBSCRIPTION_IN_PROGRESS ──► PUSH_NEEDED ◄──► PUSH_IN_PROGRESS
             ▲                       │ no metric is subscribed                 │ the subscription changed
             └───────────────────────┴──────────────────────────────────────────┘
    close with a subscription ──► TERMINATING_PUSH_NEEDED ──► TERMINATING_PUSH_IN_PROGRESS ──► TERMINATED

The rules are those of Java's ClientTelemetryReporter (KIP-714). The first push follows after a random time between 0.5
and 1.5 intervals, so that clients that start together do not push together. An error that is neither retriable nor a
changed subscription terminates the machine.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple
from uuid import UUID

from ottla.errors import ErrorCode
from ottla.model import FOREVER
from ottla.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse

DEFAULT_PUSH_INTERVAL = 300.0
"""The push interval in seconds if no broker has set one."""
RESUBSCRIBE_ERRORS = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
RETRY_LATER_ERRORS = (ErrorCode.TELEMETRY_TOO_LARGE, ErrorCode.THROTTLING_QUOTA_EXCEEDED)


class TelemetryState(Enum):
    SUBSCRIPTION_NEEDED = "subscription needed"
    SUBSCRIPTION_IN_PROGRESS = "subscription in progress"
    PUSH_NEEDED = "push needed"
    PUSH_IN_PROGRESS = "push in progress"
    TERMINATING_PUSH_NEEDED = "terminating push needed"
    TERMINATING_PUSH_IN_PROGRESS = "terminating push in progress"
    TERMINATED = "terminated"


State = TelemetryState
IN_PROGRESS_STATES = {
    State.SUBSCRIPTION_NEEDED: State.SUBSCRIPTION_IN_PROGRESS,
    State.PUSH_NEEDED: State.PUSH_IN_PROGRESS,
    State.TERMINATING_PUSH_NEEDED: State.TERMINATING_PUSH_IN_PROGRESS,
}
"""The state after the request of a state is sent. In all other states there is nothing to send."""


class PushSubscription(NamedTuple):
    """The subscription that a broker returned."""

    subscription_id: int
    compressions: tuple[int, ...]
    """The codecs that the broker accepts, the preferred one first."""
    interval: float
    max_bytes: int
    is_delta: bool
    """True if sums are pushed as increases (delta temporality)."""
    metrics: tuple[str, ...]
    """Prefixes of the subscribed metric names; empty if none is subscribed."""

    def is_subscribed(self, name: str) -> bool:
        """Return True if the metric is subscribed. `*` or an empty prefix subscribes to all metrics."""
        return self.metrics == ("*",) or name.startswith(self.metrics)


class TelemetryMachine:
    def __init__(self, now: float) -> None:
        self.state = State.SUBSCRIPTION_NEEDED
        self.due = now
        """The time of the next request; infinity while a response is pending and after termination."""
        self.client_instance_id: UUID | None = None
        self.subscription: PushSubscription | None = None
        self.rejected_codecs: set[int] = set()
        self.is_closing = False

    def start_request(self, now: float) -> TelemetryState | None:
        """Return the state with a request that is due now, and enter its in-progress state; None if no request is due."""
        state = self.state
        if now < self.due or state not in IN_PROGRESS_STATES:
            return None
        self.state, self.due = IN_PROGRESS_STATES[state], FOREVER
        return state

    def handle_subscription(self, response: GetTelemetrySubscriptionsResponse, now: float, chance: float) -> None:
        """Handle a response to GetTelemetrySubscriptions; `chance` is a random number from 0 to 1."""
        assert self.state is State.SUBSCRIPTION_IN_PROGRESS, self.state
        if response.error_code:
            self._fail(response.error_code, now)
            return
        self.client_instance_id = response.client_instance_id
        interval = response.push_interval_ms / 1000 if response.push_interval_ms > 0 else DEFAULT_PUSH_INTERVAL
        self.subscription = PushSubscription(
            response.subscription_id,
            tuple(response.accepted_compression_types),
            interval,
            response.telemetry_max_bytes,
            response.delta_temporality,
            tuple(response.requested_metrics),
        )
        if self.subscription.metrics:
            self._enter_state(State.PUSH_NEEDED, now + interval * (0.5 + chance))
        else:
            self._enter_state(State.SUBSCRIPTION_NEEDED, now + interval)

    def handle_push_response(self, error_code: int, now: float, compression: int = 0) -> None:
        """Handle a response to PushTelemetry; `compression` is the codec of the push."""
        assert self.state in (State.PUSH_IN_PROGRESS, State.TERMINATING_PUSH_IN_PROGRESS), self.state
        if self.state is State.TERMINATING_PUSH_IN_PROGRESS:
            self._enter_state(State.TERMINATED)
        elif error_code:
            if error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE:
                self.rejected_codecs.add(compression)
            self._fail(error_code, now)
        elif self.is_closing:
            self._enter_state(State.TERMINATING_PUSH_NEEDED, now)
        else:
            self._enter_state(State.PUSH_NEEDED, now + self._interval)

    def handle_disconnect(self, now: float) -> None:
        """Handle a lost connection.

        The subscription is requested again after one interval, possibly from another broker.
        """
        if self.is_closing:
            self._enter_state(State.TERMINATED)
        else:
            self._enter_state(State.SUBSCRIPTION_NEEDED, now + self._interval)

    def close(self, now: float) -> None:
        """Start the shutdown. If there is a subscription, the last metrics are pushed once more."""
        self.is_closing = True
        if self.state is State.PUSH_NEEDED:
            self._enter_state(State.TERMINATING_PUSH_NEEDED, now)
        elif self.state in (State.SUBSCRIPTION_NEEDED, State.SUBSCRIPTION_IN_PROGRESS):
            self._enter_state(State.TERMINATED)

    @property
    def _interval(self) -> float:
        return DEFAULT_PUSH_INTERVAL if self.subscription is None else self.subscription.interval

    def _fail(self, error_code: int, now: float) -> None:
        if self.is_closing or error_code not in (*RESUBSCRIBE_ERRORS, *RETRY_LATER_ERRORS):
            self._enter_state(State.TERMINATED)
        else:
            self._enter_state(
                State.SUBSCRIPTION_NEEDED, now if error_code in RESUBSCRIBE_ERRORS else now + self._interval
            )

    def _enter_state(self, state: TelemetryState, due: float = FOREVER) -> None:
        assert self.state is not State.TERMINATED, f"{state} after TERMINATED"
        self.state, self.due = state, due
        self.assert_invariants()

    def assert_invariants(self) -> None:
        """Assert the invariants."""
        assert (self.due < FOREVER) == (self.state in IN_PROGRESS_STATES), (self.state, self.due)
        assert self.subscription is not None or "push" not in self.state.value, self.state
