"""Serve connections that have not authenticated yet.

The shell around `security.authentication` that uses the sockets. A connection without a login never comes here: its
listener requires none, or the login is complete.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ottla.broker.event_loop.rate_limited_log import RateLimitedLog
from ottla.broker.event_loop.timers import Timers, repeat
from ottla.broker.network_server.connection import ANONYMOUS, Connection
from ottla.broker.security.authentication import LOGIN_SECONDS, Authentication
from ottla.broker.security.login import LoginAnswer, LoginState
from ottla.clock import Clock
from ottla.network.memory_budget import MemoryBudget
from ottla.network.selector import Selector

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
HangUp = Callable[[Connection, str], None]


class AuthenticationGate:
    """Passes on the requests that the state of a connection's login allows."""

    def __init__(
        self,
        authentication: Authentication,
        selector: Selector,
        memory: MemoryBudget,
        timers: Timers,
        clock: Clock,
        max_frame_bytes: int,
    ) -> None:
        """`max_frame_bytes` is the largest frame of an authenticated connection."""
        self._authentication = authentication
        self._selector = selector
        self._memory = memory
        self._timers = timers
        self._clock = clock
        self._most = max_frame_bytes
        self._bad_ends = RateLimitedLog(log, "unauthenticated connections failed", timers, clock)

    def accept_connection(self, connection: Connection, now: float, hang_up: HangUp) -> None:
        """Start the login of a connection.

        If too many connections are not authenticated, close the one that has waited longest.
        """
        slowest = self._authentication.accept_connection(connection, now)
        if slowest is not None:
            hang_up(slowest, "too many connections have not authenticated, and this one has waited longest")

    def is_authenticated(self, connection: Connection, frame: memoryview, now: float, hang_up: HangUp) -> bool:
        """Return True if a request of a connection with a login under way may be handled.

        A request that may not closes the connection.
        """
        login = connection.login
        if login.raw and login.state is not LoginState.DONE:
            self._memory.handed_out -= len(frame)

            def answer(login_answer: LoginAnswer) -> None:
                self._answer_without_header(connection, login_answer, hang_up)

            self._authentication.authenticate(connection, bytes(frame), answer)
            return False
        if login.security.with_sasl:
            api_key = int.from_bytes(frame[:2], "big", signed=True)
            reason = self._authentication.find_fault(connection, login, api_key, now)
        else:
            shown = getattr(self._selector.channel(connection.channel_id), "peer_certificate", None)
            reason = self._authentication.identify(connection, shown)
        if reason is not None:
            self._memory.handed_out -= len(frame)
            hang_up(connection, reason)
        return reason is None

    def after_step(self, connection: Connection) -> None:
        """Handle an answered step of a login.

        Frames of every size are read after success, and nothing more is read after a failure.
        """
        login = connection.login
        channel = self._selector.channel(connection.channel_id)
        if channel is not None and (login is None or login.state is LoginState.DONE):
            channel.lift_limits(self._most)
        elif login is not None and login.state is LoginState.REFUSED:
            self._selector.end_sending(connection.channel_id)

    def start_timer(self, hang_up: HangUp) -> None:
        """Close connections that take too long to authenticate, once a second.

        Does nothing if no listener requires authentication.
        """
        if not self._authentication.has_logins:
            return

        def check_deadlines() -> None:
            for connection in self._authentication.list_overdue(self._clock.monotonic()):
                hang_up(connection, f"it did not authenticate within {LOGIN_SECONDS:.0f} s")

        repeat(self._timers, self._clock, "unfinished logins", check_deadlines, lambda: LOOK_SECONDS)

    def remove_connection(self, connection: Connection) -> None:
        """Forget a connection that was closed."""
        if connection.login is not None:
            self._authentication.remove_connection(connection)
            connection.login = None

    def log_bad_end(self, connection: Connection, sentence: str) -> None:
        """Log that a connection ended with an error. Unauthenticated connections are logged at a limited rate."""
        if connection.principal == ANONYMOUS:
            self._bad_ends.log(sentence)
        else:
            log.warning("%s", sentence)

    def close(self) -> None:
        """Log the number of failures that were not logged, and stop the thread that hashes."""
        self._bad_ends.log_suppressed()
        self._authentication.close()

    def _answer_without_header(self, connection: Connection, answer: LoginAnswer, hang_up: HangUp) -> None:
        """Send the result of a step after a SaslHandshake v0 as a bare SASL message, or close the connection."""
        if answer.error_code:
            hang_up(connection, "authentication failed")
        else:
            self._selector.send(connection.channel_id, [answer.auth_bytes])
            self.after_step(connection)
