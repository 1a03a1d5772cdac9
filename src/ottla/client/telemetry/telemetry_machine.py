"""What a client that pushes metrics does next, and when. Pure: time and chance come in.

    SUBSCRIPTION_NEEDED ──► SUBSCRIPTION_IN_PROGRESS ──► PUSH_NEEDED ◄──► PUSH_IN_PROGRESS
             ▲                       │ nothing is wanted                        │ the subscription is another
             └───────────────────────┴──────────────────────────────────────────┘
    close: a client of which metrics are wanted ──► TERMINATING_PUSH_NEEDED ──► TERMINATING_PUSH_IN_PROGRESS ──► TERMINATED

By Java's rules: the first push comes by chance between half an interval and one and a half, so that clients which begin together
do not push together; what a broker cannot be told again ends it.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple
from uuid import UUID

from ottla.errors import ErrorCode
from ottla.model import FOREVER
from ottla.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse

PUSH_INTERVAL = 300.0
"""Seconds, where no broker has said another number."""
BEGIN_ANEW = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
LATER = (ErrorCode.TELEMETRY_TOO_LARGE, ErrorCode.THROTTLING_QUOTA_EXCEEDED)


class TelemetryState(Enum):
    SUBSCRIPTION_NEEDED = "subscription needed"
    SUBSCRIPTION_IN_PROGRESS = "subscription in progress"
    PUSH_NEEDED = "push needed"
    PUSH_IN_PROGRESS = "push in progress"
    TERMINATING_PUSH_NEEDED = "terminating push needed"
    TERMINATING_PUSH_IN_PROGRESS = "terminating push in progress"
    TERMINATED = "terminated"


State = TelemetryState
BEGUN = {
    State.SUBSCRIPTION_NEEDED: State.SUBSCRIPTION_IN_PROGRESS,
    State.PUSH_NEEDED: State.PUSH_IN_PROGRESS,
    State.TERMINATING_PUSH_NEEDED: State.TERMINATING_PUSH_IN_PROGRESS,
}
"""What a state becomes as its request leaves; in all others there is nothing to send."""


class Subscription(NamedTuple):
    """What a broker wants."""

    subscription_id: int
    compressions: tuple[int, ...]
    """Those it reads, the preferred one first."""
    interval: float
    max_bytes: int
    is_delta: bool
    """Whether sums are told by what they grew."""
    metrics: tuple[str, ...]
    """How their names begin; none for nothing."""

    def wants(self, name: str) -> bool:
        """Whether a metric is asked for; `*`, or an empty beginning, asks for all."""
        return self.metrics == ("*",) or name.startswith(self.metrics)


class TelemetryMachine:
    def __init__(self, now: float) -> None:
        self.state = State.SUBSCRIPTION_NEEDED
        self.due = now
        """When there is something to send; infinity while an answer is waited for, and after the end."""
        self.client_instance_id: UUID | None = None
        self.subscription: Subscription | None = None
        self.refused_compressions: set[int] = set()
        self.is_closing = False

    def begin(self, now: float) -> TelemetryState | None:
        """The state whose request leaves now; None where nothing is to be sent yet."""
        state = self.state
        if now < self.due or state not in BEGUN:
            return None
        self.state, self.due = BEGUN[state], FOREVER
        return state

    def subscribed(self, answer: GetTelemetrySubscriptionsResponse, now: float, chance: float) -> None:
        """A broker says what it wants; `chance` is from 0 to 1."""
        assert self.state is State.SUBSCRIPTION_IN_PROGRESS, self.state
        if answer.error_code:
            self._fail(answer.error_code, now)
            return
        self.client_instance_id = answer.client_instance_id
        interval = answer.push_interval_ms / 1000 if answer.push_interval_ms > 0 else PUSH_INTERVAL
        self.subscription = Subscription(
            answer.subscription_id,
            tuple(answer.accepted_compression_types),
            interval,
            answer.telemetry_max_bytes,
            answer.delta_temporality,
            tuple(answer.requested_metrics),
        )
        if self.subscription.metrics:
            self._become(State.PUSH_NEEDED, now + interval * (0.5 + chance))
        else:
            self._become(State.SUBSCRIPTION_NEEDED, now + interval)

    def pushed(self, error_code: int, now: float, compression: int = 0) -> None:
        """A broker has answered a push that was compressed so."""
        assert self.state in (State.PUSH_IN_PROGRESS, State.TERMINATING_PUSH_IN_PROGRESS), self.state
        if self.state is State.TERMINATING_PUSH_IN_PROGRESS:
            self._become(State.TERMINATED)
        elif error_code:
            if error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE:
                self.refused_compressions.add(compression)
            self._fail(error_code, now)
        elif self.is_closing:
            self._become(State.TERMINATING_PUSH_NEEDED, now)
        else:
            self._become(State.PUSH_NEEDED, now + self._interval)

    def unanswered(self, now: float) -> None:
        """The connection is gone; another broker may be asked, but not at once."""
        if self.is_closing:
            self._become(State.TERMINATED)
        else:
            self._become(State.SUBSCRIPTION_NEEDED, now + self._interval)

    def close(self, now: float) -> None:
        """The client ends: what has come since the last push is told, where anybody wants to know."""
        self.is_closing = True
        if self.state is State.PUSH_NEEDED:
            self._become(State.TERMINATING_PUSH_NEEDED, now)
        elif self.state in (State.SUBSCRIPTION_NEEDED, State.SUBSCRIPTION_IN_PROGRESS):
            self._become(State.TERMINATED)

    @property
    def _interval(self) -> float:
        return PUSH_INTERVAL if self.subscription is None else self.subscription.interval

    def _fail(self, error_code: int, now: float) -> None:
        if self.is_closing or error_code not in (*BEGIN_ANEW, *LATER):
            self._become(State.TERMINATED)
        else:
            self._become(State.SUBSCRIPTION_NEEDED, now if error_code in BEGIN_ANEW else now + self._interval)

    def _become(self, state: TelemetryState, due: float = FOREVER) -> None:
        assert self.state is not State.TERMINATED, f"{state} after the end"
        self.state, self.due = state, due
        self.check()

    def check(self) -> None:
        """What always holds."""
        assert (self.due < FOREVER) == (self.state in BEGUN), (self.state, self.due)
        assert self.subscription is not None or "push" not in self.state.value, self.state
