"""The door of a controller: who has shown who it is, before anything that it asks is looked at.

The same handshakes and logins as at a broker's door, with one difference: who may log in, the settings or Kerberos alone say. The users of the cluster
are in the log that a controller may yet have to fetch from those who want to come in.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from ottla.broker.authentication.authentication import Authentication
from ottla.broker.authentication.listener_security import ListenerSecurity
from ottla.broker.authentication.login import LoginAnswer
from ottla.broker.authentication.passwords import Passwords
from ottla.broker.gate import Gate, HangUp
from ottla.broker.requests.connection import Connection
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.endpoints import Endpoint
from ottla.broker.timers import Timers
from ottla.clock import Clock
from ottla.errors import ConfigError
from ottla.network.listener import Listener
from ottla.network.memory_budget import MemoryBudget
from ottla.network.selector import Selector
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from ottla.protocol.sasl.scram_credential import MECHANISMS, ScramCredential, decoy
from ottla.protocol.schema import Message

CHECKED = frozenset({"PLAIN", "GSSAPI"})
"""Mechanisms whose users the settings list, or a KDC knows."""
BARE = 0
"""The version of SaslHandshake after which messages of SASL come without a header."""


class NoPasswords(Passwords):
    """The passwords of a controller: its settings list all users."""

    def __init__(self) -> None:
        self._secret = os.urandom(32)
        self._right = {}

    def credential(self, mechanism: str, user: str) -> ScramCredential | None:
        return None

    def any_of(self, user: str) -> tuple[str, ScramCredential]:
        return MECHANISMS[1], decoy(MECHANISMS[1], self._secret, user)


class ControllerDoor:
    """Who is let in at the controllers' listeners; of one loop, and not to be used from another thread."""

    def __init__(
        self,
        config: BrokerConfig,
        selector: Selector,
        timers: Timers,
        clock: Clock,
        call_soon: Callable[[Callable[[], None]], None],
    ) -> None:
        """ConfigError where the settings of a listener do not fit together."""
        self._selector = selector
        self._clock = clock
        self._securities = {
            name: ListenerSecurity(config, name, protocol) for name, protocol in config.protocols().items()
        }
        for each in self._securities.values():
            ensure_listed(each)
        self._names: dict[Listener, str] = {}
        self._authentication = Authentication(config, self._securities, NoPasswords(), None, timers, clock, call_soon)
        most = config.socket_request_max_bytes
        self._gate = Gate(self._authentication, selector, MemoryBudget(), timers, clock, most)

    def listen(self, endpoint: Endpoint) -> Listener:
        """OSError where nobody can listen there."""
        security = self._securities[endpoint.name]
        listener = self._selector.listen(endpoint.host, endpoint.port, security.make_channel, security.max_frame_bytes)
        self._names[listener] = endpoint.name
        return listener

    def is_open(self, name: str) -> bool:
        """Whether anybody comes in by that listener without having shown who it is."""
        return not self._securities[name].identifies

    def watch(self, hang_up: HangUp) -> None:
        """Close connections from now on that take too long to show who they are."""
        self._gate.watch(hang_up)

    def welcome(self, channel_id: int, hang_up: HangUp) -> Connection:
        listener, now = self._selector.listener(channel_id), self._clock.monotonic()
        assert listener is not None
        peer, local = self._selector.peer(channel_id), self._selector.local(channel_id)
        connection = Connection(channel_id, (peer[0], peer[1]), (local[0], local[1]), now, self._names[listener])
        self._gate.welcome(connection, now, hang_up)
        return connection

    def lets_in(self, connection: Connection, frame: memoryview, hang_up: HangUp) -> bool:
        """Whether that request may be looked at."""
        return connection.login is None or self._gate.lets_in(connection, frame, self._clock.monotonic(), hang_up)

    def tell_bad_end(self, connection: Connection, sentence: str) -> None:
        """Log that a connection ended as it should not; of those that nobody knows, few are told one by one."""
        self._gate.tell_bad_end(connection, sentence)

    def leave(self, connection: Connection) -> None:
        self._gate.leave(connection)

    def log_in(self, connection: Connection, request: Message, version: int, answer: Callable[[Message], None]) -> None:
        """Take a step of a login; it is answered at once or later."""
        if isinstance(request, SaslHandshakeRequest):
            raw = version == BARE
            code, mechanisms = self._authentication.shake_hands(connection, request.mechanism, raw=raw)
            answer(SaslHandshakeResponse(error_code=code, mechanisms=mechanisms))
            return
        assert isinstance(request, SaslAuthenticateRequest)

        def tell(step: LoginAnswer) -> None:
            answer(SaslAuthenticateResponse(*step))
            self._gate.after_step(connection)

        self._authentication.authenticate(connection, bytes(request.auth_bytes), tell)

    def close(self) -> None:
        """Say what was not said, and let the thread that hashes end."""
        self._gate.close()


def ensure_listed(security: ListenerSecurity) -> None:
    """ConfigError where others would log in by what a controller cannot check."""
    if security.with_sasl and not CHECKED.issuperset(security.mechanisms):
        raise ConfigError(
            f"listener {security.name} of a controller takes {','.join(security.mechanisms)}: it can check PLAIN alone, whose users "
            f"are listed in listener.name.{security.name.lower()}.plain.sasl.jaas.config, and GSSAPI, which is Kerberos; set "
            f"listener.name.{security.name.lower()}.sasl.enabled.mechanisms=PLAIN, or use SSL with ssl.client.auth=required"
        )
