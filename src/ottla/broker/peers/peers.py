"""Makes the conversations of a broker with others of its cluster: each for one thread, or for the loop."""

from __future__ import annotations

from ottla.broker.peers.peer_connection import ANSWER_SECONDS, PeerConnection
from ottla.broker.peers.peer_login import PeerLogins
from ottla.broker.peers.split import Split
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.peer_security import towards_brokers, towards_controllers
from ottla.broker.timers import Timers
from ottla.clock import Clock
from ottla.network.selector import Selector
from ottla.security.channels import channel_maker


class Peers:
    """One way to controllers, one to brokers; certificates are read once for all that go the same way."""

    def __init__(self, config: BrokerConfig, clock: Clock) -> None:
        """ConfigError where the settings do not say how, or a file of certificates will not do."""
        self.split = Split()
        self._clock = clock
        self._controllers, self._brokers = towards_controllers(config), towards_brokers(config)
        self._to_controllers = channel_maker(self._controllers.config)
        self._to_brokers = channel_maker(self._brokers.config)
        self._logins_to_controllers, self._logins_to_brokers = PeerLogins(self._controllers), PeerLogins(self._brokers)

    @property
    def broker_listener(self) -> str:
        """The name of the listener by which other brokers are reached: each has registered where it is."""
        return self._brokers.listener

    def controller(
        self, client_id: str, selector: Selector, timers: Timers, answer_seconds: float = ANSWER_SECONDS
    ) -> PeerConnection:
        """Return a connection to whichever controller is asked, for the loop to which these belong."""
        how = self._controllers, self._logins_to_controllers, self._to_controllers, self.split
        return PeerConnection(client_id, selector, timers, self._clock, *how, answer_seconds)

    def broker(self, client_id: str, selector: Selector, timers: Timers) -> PeerConnection:
        """A conversation with another broker, in the loop to which these belong."""
        how = self._brokers, self._logins_to_brokers, self._to_brokers, self.split
        return PeerConnection(client_id, selector, timers, self._clock, *how)
