"""Ports that a broker comes back to: nobody else is given them while it is away."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from ottla.broker.settings.endpoints import Endpoint
from ottla.free_ports import HOLDS, free_port
from ottla.network.listener import passive_address


class StandingPorts:
    """The listeners of a broker, with a number in the place of each port 0."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self._holders: list[socket.socket] = []
        self.listeners = ",".join(str(self._standing(each)) for each in endpoints)
        """As `listeners` has them."""

    def close(self) -> None:
        for holder in self._holders:
            holder.close()

    def _standing(self, endpoint: Endpoint) -> Endpoint:
        return endpoint if endpoint.port else endpoint._replace(port=self._port(endpoint.host))

    def _port(self, host: str) -> int:
        if not HOLDS:
            return free_port()
        family, address = passive_address(host, 0)
        holder = socket.socket(family, socket.SOCK_STREAM)
        self._holders.append(holder)
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the listener has it: both may have the port
        holder.bind(address)
        return int(holder.getsockname()[1])
