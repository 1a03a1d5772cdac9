"""Creates connections of a broker to other nodes of its cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.event_loop.timers import Timers
from ottla.broker.peers.network_partition import NetworkPartition
from ottla.broker.peers.peer_connection import ANSWER_SECONDS, PeerConnection
from ottla.broker.peers.peer_login import PeerLogins
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.peer_security import towards_brokers, towards_controllers
from ottla.clock import Clock
from ottla.network.selector import Selector
from ottla.security.channels import channel_maker

if TYPE_CHECKING:
    from ottla.coordination.quorum.observer import Address


class RemoteBrokers(NamedTuple):
    """Addresses of other brokers and connections to them, for parts that are created at first use."""

    address: Callable[[int], Address | None]
    connect: Callable[[str, int], PeerConnection]
    """Returns a connection to a broker; the text is a part of its client id."""


class Peers:
    """Connections to controllers, and to brokers. Certificates are read once for each of the two."""

    def __init__(self, config: BrokerConfig, clock: Clock) -> None:
        """Raise ConfigError if settings are missing, or a certificate file is invalid."""
        self.split = NetworkPartition()
        self._clock = clock
        self._controllers, self._brokers = towards_controllers(config), towards_brokers(config)
        self._to_controllers = channel_maker(self._controllers.config)
        self._to_brokers = channel_maker(self._brokers.config)
        self._logins_to_controllers, self._logins_to_brokers = PeerLogins(self._controllers), PeerLogins(self._brokers)

    @property
    def broker_listener(self) -> str:
        """The name of the listener for connections between brokers, with the address that each has registered."""
        return self._brokers.listener

    def connect_to_controller(
        self, client_id: str, selector: Selector, timers: Timers, answer_seconds: float = ANSWER_SECONDS
    ) -> PeerConnection:
        """Return a connection to a controller, for the loop of this selector and these timers."""
        how = self._controllers, self._logins_to_controllers, self._to_controllers, self.split
        return PeerConnection(client_id, selector, timers, self._clock, *how, answer_seconds)

    def connect_to_broker(self, client_id: str, selector: Selector, timers: Timers) -> PeerConnection:
        """Return a connection to a broker, for the loop of this selector and these timers."""
        how = self._brokers, self._logins_to_brokers, self._to_brokers, self.split
        return PeerConnection(client_id, selector, timers, self._clock, *how)
