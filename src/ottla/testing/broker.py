"""The broker of the plugin: an `ottla.Broker` with injected faults and a clock that tests can advance."""

from __future__ import annotations

import shutil
import socket
import tempfile
import time
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.broker.embedding.embedded_broker import CLOSE_SECONDS, Broker
from ottla.broker.settings.config import read_config
from ottla.broker.settings.endpoints import Endpoint
from ottla.clock import wall_ms
from ottla.config import unknown_among
from ottla.errors import ConfigError, ErrorCode, IllegalStateError, KafkaError
from ottla.free_ports import HOLDS, free_port
from ottla.network.listener import passive_address
from ottla.testing.faults.faults import Faults, run_in_loop

if TYPE_CHECKING:
    from ottla.broker.node import BrokerNode
    from ottla.broker.server import Server


WORDS = ("weeks", "days", "hours", "minutes", "seconds", "milliseconds", "microseconds")


class TravellingClock:
    """The `Clock` of the plugin's broker; only the broker's own thread changes it."""

    def __init__(self) -> None:
        self.ahead_ms = 0
        """The lead of the broker's clock over the system clock in ms."""

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead_ms / 1000

    def wall_ms(self) -> int:
        return wall_ms() + self.ahead_ms


class ReservedPorts:
    """The listeners of a broker, with a reserved port in place of each port 0."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self._holders: list[socket.socket] = []
        self.listeners = ",".join(str(self._fixed(each)) for each in endpoints)
        """The value of `listeners`."""

    def close(self) -> None:
        for holder in self._holders:
            holder.close()

    def _fixed(self, endpoint: Endpoint) -> Endpoint:
        return endpoint if endpoint.port else endpoint._replace(port=self._port(endpoint.host))

    def _port(self, host: str) -> int:
        if not HOLDS:
            return free_port()
        family, address = passive_address(host, 0)
        holder = socket.socket(family, socket.SOCK_STREAM)
        self._holders.append(holder)
        holder.setsockopt(
            socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
        )  # same option as the listener, so that both can bind the port
        holder.bind(address)
        return int(holder.getsockname()[1])


class TestedBroker(Broker):
    """The broker of the fixture `ottla_broker`."""

    __test__ = False  # prevents collection by pytest

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._travelling = self.clock = TravellingClock()
        self._given = self.config
        self._ports: ReservedPorts | None = None
        self._folder: str | None = None
        self.is_shared = False
        """True if other tests use the same address after a call of `close`."""
        self.faults = Faults(lambda: self.server)
        """The injected faults; removed after each test."""

    @property
    def is_running(self) -> bool:
        """True if it serves; false after `crash` until `start`."""
        return self._running is not None

    def start(self) -> TestedBroker:
        """Start the broker; after `crash`, on the same port and with the same data."""
        if self._running is None and (self._ports is None or not (self._folder or self._given.log_dirs)):
            self._fix_addresses()
        super().start()
        return self

    def crash(self) -> None:
        """Stop the broker as `kill -9` does: connections break without a response, and files stay as they are.

        `start()` restarts it with all acknowledged data; otherwise the end of the test does.
        """
        if self._running is None:
            raise IllegalStateError("the broker has crashed already: restart it with start()")
        server = self.server
        if server is None:
            self._kill()
        else:
            server.call_soon(server.crash)
        super().close()

    def restart(self) -> None:
        """Shut it down cleanly, and start it again on the same port with the same data."""
        super().close()
        self.start()

    def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Stop the broker; a temporary data directory is deleted. A shared broker restarts empty, on the same port."""
        if self._folder is not None and self.is_running:
            self.crash()  # its data is deleted, so nothing needs to be flushed
        super().close(timeout)
        if self._ports is not None and not self.is_shared:
            self._ports.close()
            self._ports = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def expire_sessions(self, group: str) -> int:
        """Expire the sessions of all members of a consumer group now; return their number.

        The members are removed and join again, as their client does. Raises ConfigError for an unknown group.
        """
        server = self._server("expire_sessions()")
        outcomes: list[int | KafkaError] = []

        def work() -> None:
            try:
                outcomes.append(expire_members(server.node, group))
            except KafkaError as error:
                outcomes.append(error)

        run_in_loop(server, work)
        (outcome,) = outcomes
        if isinstance(outcome, KafkaError):
            raise ConfigError(f"expire_sessions({group!r}): {outcome}")
        return outcome

    def travel(self, **span: float) -> None:
        """Advance the broker's clock at once: `travel(hours=2)`, with the arguments of `datetime.timedelta`.

         Everything that is due happens: sessions expire, transactions time out, records and offsets expire. It cannot
        be undone, and the clocks of clients do not change.
        """
        ms = span_ms(span)
        server = self._server("travel()")

        def move() -> None:
            self._travelling.ahead_ms += ms

        # The iteration after the move reads the new time and runs timers; the next one is after their effects.
        for work in (move, lambda: None, lambda: None):
            run_in_loop(server, work)

    def _server(self, what: str) -> Server:
        if self.server is None:
            raise IllegalStateError(
                f"{what} needs a running broker in this process: remove process=True from ottla_broker_settings"
            )
        return self.server

    def _kill(self) -> None:
        from ottla.broker.embedding.broker_process import BrokerProcess

        assert isinstance(self._running, BrokerProcess)
        self._running.kill()

    def _fix_addresses(self) -> None:
        """Choose a data directory and ports that stay the same after a restart."""
        settings = self._given.explicit()
        self._ports = self._ports or ReservedPorts(self._given.endpoints())
        settings["listeners"] = self._ports.listeners
        if not self._given.log_dirs:
            settings["log_dirs"] = self._folder = tempfile.mkdtemp(prefix="ottla-")
        self.config = read_config(settings)


def span_ms(span: dict[str, float]) -> int:
    """Return the milliseconds of a span in the arguments of `timedelta`; raise ConfigError if it is invalid."""
    for word in span:
        if word not in WORDS:
            message = unknown_among("word", word, WORDS, f"timedelta's, such as hours=2: {', '.join(WORDS)}")
            raise ConfigError(f"travel({format_arguments(span)}): {message}")
    try:
        ms = round(timedelta(**span).total_seconds() * 1000)
    except (TypeError, OverflowError) as error:
        raise ConfigError(f"travel({format_arguments(span)}): {error}: expected a number, such as hours=2") from None
    if ms <= 0:
        raise ConfigError(
            f"travel({format_arguments(span)}) does not advance the clock: expected a positive span, such as hours=2"
        )
    return ms


def format_arguments(span: dict[str, float]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in span.items())


def expire_members(node: BrokerNode, group_id: str) -> int:
    """Expire the session timer of each member, in the broker's loop; return the number of members."""
    group = node.groups.find(group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id!r}")
    from ottla.coordination.groups.classic.decision import SESSION
    from ottla.coordination.groups.events import TimerExpired, TimerName

    members = list(group.members)
    for member in members:
        event = partial(TimerExpired, name=TimerName(SESSION, group_id, member), wall_ms=node.clock.wall_ms())
        node.groups.submit(group_id, event, make=False)
    return len(members)
