"""The door of a broker: what connections may ask before it is known who they are.

The shell around `authentication`, as far as it needs the sockets. A connection that has no login, since its listener asks for
none or it is over for good, never comes here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ottla.broker.authentication.authentication import LOGIN_SECONDS, Authentication
from ottla.broker.authentication.login import LoginAnswer, LoginState
from ottla.broker.bounded_log import BoundedLog
from ottla.broker.requests.connection import ANONYMOUS, Connection
from ottla.broker.timers import Timers, repeat
from ottla.clock import Clock
from ottla.network.memory_budget import MemoryBudget
from ottla.network.selector import Selector

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
HangUp = Callable[[Connection, str], None]


class Gate:
    """Lets connections in, each as far as it has shown who it is."""

    def __init__(
        self,
        authentication: Authentication,
        selector: Selector,
        memory: MemoryBudget,
        timers: Timers,
        clock: Clock,
        max_frame_bytes: int,
    ) -> None:
        """`max_frame_bytes` is what those may send in a frame who are known."""
        self._authentication = authentication
        self._selector = selector
        self._memory = memory
        self._timers = timers
        self._clock = clock
        self._most = max_frame_bytes
        self._bad_ends = BoundedLog(log, "connections of strangers ended badly", timers, clock)

    def welcome(self, connection: Connection, now: float, hang_up: HangUp) -> None:
        """Begin with a connection; where too many have not logged in, who has taken longest has to go."""
        slowest = self._authentication.welcome(connection, now)
        if slowest is not None:
            hang_up(slowest, "there are too many that have not logged in, and it has taken longest")

    def lets_in(self, connection: Connection, frame: memoryview, now: float, hang_up: HangUp) -> bool:
        """Whether a request of a connection that is to log in may be handled; what may not, ends it."""
        login = connection.login
        if login.raw and login.state is not LoginState.DONE:
            self._memory.handed_out -= len(frame)

            def answer(told: LoginAnswer) -> None:
                self._answer_bare(connection, told, hang_up)

            self._authentication.authenticate(connection, bytes(frame), answer)
            return False
        if login.security.with_sasl:
            api_key = int.from_bytes(frame[:2], "big", signed=True)
            reason = self._authentication.fault_of(connection, login, api_key, now)
        else:
            shown = getattr(self._selector.channel(connection.channel_id), "peer_certificate", None)
            reason = self._authentication.identify(connection, shown)
        if reason is not None:
            self._memory.handed_out -= len(frame)
            hang_up(connection, reason)
        return reason is None

    def after_step(self, connection: Connection) -> None:
        """A step of a login was answered: requests of every size come from who is known now, and none from who is refused."""
        login = connection.login
        channel = self._selector.channel(connection.channel_id)
        if channel is not None and (login is None or login.state is LoginState.DONE):
            channel.admit(self._most)
        elif login is not None and login.state is LoginState.REFUSED:
            self._selector.end_sending(connection.channel_id)

    def watch(self, hang_up: HangUp) -> None:
        """Close connections that take too long to log in, from time to time; nobody is awaited where there are no logins."""
        if not self._authentication.has_logins:
            return

        def look() -> None:
            for connection in self._authentication.overdue(self._clock.monotonic()):
                hang_up(connection, f"it has not logged in within {LOGIN_SECONDS:.0f} s")

        repeat(self._timers, self._clock, "unfinished logins", look, lambda: LOOK_SECONDS)

    def leave(self, connection: Connection) -> None:
        """A connection has ended, whatever became of its login."""
        if connection.login is not None:
            self._authentication.leave(connection)
            connection.login = None

    def tell_bad_end(self, connection: Connection, sentence: str) -> None:
        """Log that a connection ended as it should not; of those that nobody knows, few are told one by one."""
        if connection.principal == ANONYMOUS:
            self._bad_ends.tell(sentence)
        else:
            log.warning("%s", sentence)

    def close(self) -> None:
        """Say what was not said, and let the thread that hashes end."""
        self._bad_ends.tell_rest()
        self._authentication.close()

    def _answer_bare(self, connection: Connection, answer: LoginAnswer, hang_up: HangUp) -> None:
        """Tell the outcome of a step after a SaslHandshake v0: a message of SASL, or the end."""
        if answer.error_code:
            hang_up(connection, "its login was refused")
        else:
            self._selector.send(connection.channel_id, [answer.auth_bytes])
            self.after_step(connection)
