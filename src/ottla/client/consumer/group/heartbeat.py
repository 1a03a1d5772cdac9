"""The timers of a member: heartbeats, session and polls. Pure.

Times and durations are seconds of the monotonic clock. Corresponds to Java's Heartbeat.
"""

from __future__ import annotations

from ottla.model import FOREVER


class Heartbeat:
    """The three timers of a member: its heartbeats, its session, and the polls of its user."""

    def __init__(self, *, interval_ms: float, session_timeout_ms: float, max_poll_interval_ms: float) -> None:
        self.interval = interval_ms / 1000
        self.session_timeout = session_timeout_ms / 1000
        self.max_poll_interval = max_poll_interval_ms / 1000
        self._polled = -FOREVER
        self._due = FOREVER
        self._session_started = FOREVER

    def start(self, now: float) -> None:
        """Start a session after the member has joined the group."""
        self._session_started = now
        self._due = now + self.interval

    def stop(self) -> None:
        """End the session."""
        self._session_started = self._due = FOREVER

    def poll(self, now: float) -> None:
        """Record a call of `poll`."""
        self._polled = max(self._polled, now)

    def record_sent(self, now: float) -> None:
        """Record a sent heartbeat; the next is due after an interval."""
        self._due = now + self.interval

    def record_received(self, now: float) -> None:
        """Record a response of the coordinator, which extends the session."""
        self._session_started = now

    def send_by(self, moment: float) -> None:
        """Send the next heartbeat at `moment` at the latest, after a failure."""
        self._due = min(self._due, moment)

    def time_to_next(self, now: float) -> float:
        """Return the seconds until the next heartbeat is due."""
        return max(0.0, self._due - now)

    def is_session_expired(self, now: float) -> bool:
        """Return True if the coordinator has not responded for a session timeout, so it must have removed this member."""
        return now - self._session_started > self.session_timeout

    def is_poll_expired(self, now: float) -> bool:
        """Return True if the user has not polled for `max.poll.interval.ms`."""
        return now - self._polled > self.max_poll_interval

    def poll_gap(self, now: float) -> float:
        """Return the seconds since the last `poll`; infinity before the first."""
        return now - self._polled

    def response_gap(self, now: float) -> float:
        """Return the seconds since the last response of the coordinator; minus infinity outside a session."""
        return now - self._session_started

    def time_to_poll_expiry(self, now: float) -> float:
        """Return the seconds until `max.poll.interval.ms` expires."""
        return max(0.0, self._polled + self.max_poll_interval - now)
