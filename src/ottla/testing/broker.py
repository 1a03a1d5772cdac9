"""The broker of the plugin: an `ottla.Broker` with which things can go wrong, and for which time passes as a test says."""

from __future__ import annotations

import shutil
import tempfile
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ottla.broker.embedded import CLOSE_SECONDS, Broker
from ottla.broker.settings.config import read_config
from ottla.config import unknown_among
from ottla.errors import ConfigError, IllegalStateError, KafkaError
from ottla.testing.clock import TravellingClock
from ottla.testing.faults.faults import Faults, in_loop
from ottla.testing.sessions import expire
from ottla.testing.standing_ports import StandingPorts

if TYPE_CHECKING:
    from ottla.broker.server import Server


WORDS = ("weeks", "days", "hours", "minutes", "seconds", "milliseconds", "microseconds")


class TestedBroker(Broker):
    """What `ottla_broker` is."""

    __test__ = False  # pytest takes it for no test

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._travelling = self.clock = TravellingClock()
        self._given = self.config
        self._ports: StandingPorts | None = None
        self._folder: str | None = None
        self.is_shared = False
        """Whether others come to the same address after whoever calls `close`."""
        self.faults = Faults(lambda: self.server)
        """What goes wrong on purpose; undone after each test."""

    @property
    def is_running(self) -> bool:
        """Whether it serves; False after `crash`, until `start`."""
        return self._running is not None

    def start(self) -> TestedBroker:
        """Start it; after `crash` on the same port, with what it had."""
        if self._running is None and (self._ports is None or not (self._folder or self._given.log_dirs)):
            self._settle()
        super().start()
        return self

    def crash(self) -> None:
        """End it as `kill -9` would: connections break off without an answer, and its files stay as they are.

        `start()` brings it back, and finds what it had acknowledged; else the end of the test does.
        """
        if self._running is None:
            raise IllegalStateError("the broker has crashed already; start() brings it back")
        server = self.server
        if server is None:
            self._kill()
        else:
            server.call_soon(server.crash)
        super().close()

    def restart(self) -> None:
        """Shut it down as an upgrade would, and start it again on the same port, with what it had."""
        super().close()
        self.start()

    def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """End it for good; what nobody gave it a directory for is gone. One that is shared comes back empty, on the same port."""
        if self._folder is not None and self.is_running:
            self.crash()  # nothing of it is worth the wait for the disk
        super().close(timeout)
        if self._ports is not None and not self.is_shared:
            self._ports.close()
            self._ports = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def expire_sessions(self, group: str) -> int:
        """Have the members of a consumer group count as silent for too long, at once; how many there were.

        They are sent away, and come back as their client does. ConfigError for a group that is not known.
        """
        server = self._server("expire_sessions()")
        outcomes: list[int | KafkaError] = []

        def work() -> None:
            try:
                outcomes.append(expire(server.node, group))
            except KafkaError as error:
                outcomes.append(error)

        in_loop(server, work)
        (outcome,) = outcomes
        if isinstance(outcome, KafkaError):
            raise ConfigError(f"expire_sessions({group!r}): {outcome}")
        return outcome

    def travel(self, **span: float) -> None:
        """Let so much time pass for the broker, at once: `travel(hours=2)`, with the words of `datetime.timedelta`.

        What is due by then happens: sessions of members end, transactions time out, records and offsets are too old. It is not
        undone, and clients keep their own time.
        """
        ms = span_ms(span)
        server = self._server("travel()")

        def move() -> None:
            self._travelling.ahead_ms += ms

        # The turn after that in which it moves reads the new time and rings; the one behind that knows that it has.
        for work in (move, lambda: None, lambda: None):
            in_loop(server, work)

    def _server(self, what: str) -> Server:
        if self.server is None:
            raise IllegalStateError(
                f"{what} needs a running broker in this process: leave process=True out of ottla_broker_settings"
            )
        return self.server

    def _kill(self) -> None:
        from ottla.broker.process import BrokerProcess

        assert isinstance(self._running, BrokerProcess)
        self._running.kill()

    def _settle(self) -> None:
        """A place and ports that stay the same when it comes back."""
        settings = self._given.explicit()
        self._ports = self._ports or StandingPorts(self._given.endpoints())
        settings["listeners"] = self._ports.listeners
        if not self._given.log_dirs:
            settings["log_dirs"] = self._folder = tempfile.mkdtemp(prefix="ottla-")
        self.config = read_config(settings)


def span_ms(span: dict[str, float]) -> int:
    """Milliseconds of a span that is named as `timedelta` names it; ConfigError where it is none that can pass."""
    for word in span:
        if word not in WORDS:
            told = unknown_among("word", word, WORDS, f"timedelta's, such as hours=2: {', '.join(WORDS)}")
            raise ConfigError(f"travel({asked(span)}): {told}")
    try:
        ms = round(timedelta(**span).total_seconds() * 1000)
    except (TypeError, OverflowError) as error:
        raise ConfigError(f"travel({asked(span)}): {error}; give a number that is a span, such as hours=2") from None
    if ms <= 0:
        raise ConfigError(f"travel({asked(span)}) goes nowhere: time passes forwards, such as travel(hours=2)")
    return ms


def asked(span: dict[str, float]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in span.items())
