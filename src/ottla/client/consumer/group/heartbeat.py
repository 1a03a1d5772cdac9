"""When a member must be heard of, and when it has been silent for too long.

Pure: told what happened and when. Moments and spans are seconds on the monotonic clock.
"""

from __future__ import annotations

from ottla.model import FOREVER


class Heartbeat:
    """The three clocks of a member: its heartbeats, its session, and the polls of its user."""

    def __init__(self, *, interval_ms: float, session_timeout_ms: float, max_poll_interval_ms: float) -> None:
        self.interval = interval_ms / 1000
        self.session_timeout = session_timeout_ms / 1000
        self.max_poll_interval = max_poll_interval_ms / 1000
        self._polled = -FOREVER
        self._due = FOREVER
        self._session_started = FOREVER

    def start(self, now: float) -> None:
        """A session begins: the member was let into the group."""
        self._session_started = now
        self._due = now + self.interval

    def stop(self) -> None:
        """There is no session to keep up."""
        self._session_started = self._due = FOREVER

    def poll(self, now: float) -> None:
        """The user has called `poll`."""
        self._polled = max(self._polled, now)

    def sent(self, now: float) -> None:
        """A heartbeat has left; the next is due an interval later."""
        self._due = now + self.interval

    def received(self, now: float) -> None:
        """The coordinator has answered one: the session is good for its whole span again."""
        self._session_started = now

    def hurry(self, moment: float) -> None:
        """The last one failed: try again at `moment`."""
        self._due = min(self._due, moment)

    def wait(self, now: float) -> float:
        """Seconds until the next heartbeat is due."""
        return max(0.0, self._due - now)

    def session_expired(self, now: float) -> bool:
        """Whether the coordinator has been silent for so long that it must have given this member up."""
        return now - self._session_started > self.session_timeout

    def poll_expired(self, now: float) -> bool:
        """Whether the user has not polled for longer than `max.poll.interval.ms`."""
        return now - self._polled > self.max_poll_interval

    def poll_gap(self, now: float) -> float:
        """Seconds since the user was last in `poll`; infinity before the first."""
        return now - self._polled

    def silence(self, now: float) -> float:
        """Seconds since the coordinator last answered; minus infinity outside a session."""
        return now - self._session_started

    def poll_wait(self, now: float) -> float:
        """Seconds until the user's patience with `poll` is over."""
        return max(0.0, self._polled + self.max_poll_interval - now)
