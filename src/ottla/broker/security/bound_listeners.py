"""The listeners of one role of a node: bound ports, each with its security settings."""

from __future__ import annotations

from ottla.broker.network_server.socket_server import SocketServer
from ottla.broker.security.listener_security import ListenerSecurity
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.endpoints import Endpoint, reached_from_here
from ottla.errors import ConfigError
from ottla.network.listener import ConnectionLimit, Listener


class BoundListeners:
    """The listeners of one role: ports that are bound, each with its security settings."""

    def __init__(self, server: SocketServer, config: BrokerConfig, limit: ConnectionLimit | None = None) -> None:
        """Bind the ports. Connections are refused until `open`. ConfigError if an address is invalid or in use."""
        self._selector = server.selector
        self.securities = {
            name: ListenerSecurity(config, name, protocol) for name, protocol in config.protocols().items()
        }
        self.names = {self._bind(each, limit): each.name for each in config.endpoints()}

    def _bind(self, endpoint: Endpoint, limit: ConnectionLimit | None) -> Listener:
        security = self.securities[endpoint.name]
        how = security.make_channel, security.max_frame_bytes, limit
        try:
            return self._selector.bind(endpoint.host, endpoint.port, *how)
        except OSError as error:
            raise ConfigError(error.strerror or str(error)) from None

    @property
    def addresses(self) -> dict[str, str]:
        """The address of each listener by name, for clients on this machine."""
        return {name: reached_from_here(*listener.address) for listener, name in self.names.items()}

    @property
    def bound(self) -> dict[str, tuple[str, int]]:
        """The host and port of each listener, by its name."""
        return {name: listener.address for listener, name in self.names.items()}

    def open(self) -> None:
        """Accept connections. ConfigError if another process that has bound the same port is listening already."""
        try:
            for listener in self.names:
                self._selector.open_listener(listener)
        except OSError as error:
            raise ConfigError(error.strerror or str(error)) from None

    def close(self) -> None:
        """Refuse connections from now on."""
        for listener in self.names:
            self._selector.close_listener(listener)
