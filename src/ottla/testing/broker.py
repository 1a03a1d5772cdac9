"""The broker of the plugin: an `ottla.Broker` with which things can go wrong, and for which time passes as a test says."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from ottla.broker.embedded import Broker
from ottla.errors import ConfigError, IllegalStateError
from ottla.testing.clock import TravellingClock
from ottla.testing.faults.faults import Faults, in_loop


class TestedBroker(Broker):
    """What `ottla_broker` is."""

    __test__ = False  # pytest takes it for no test

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._travelling = self.clock = TravellingClock()
        self.faults = Faults(lambda: self.server)
        """What goes wrong on purpose; undone after each test."""

    def travel(self, **span: float) -> None:
        """Let so much time pass for the broker, at once: `travel(hours=2)`, with the words of `datetime.timedelta`.

        What is due by then happens: sessions of members end, transactions time out, records and offsets are too old. It is not
        undone, and clients keep their own time.
        """
        ms = span_ms(span)
        server = self.server
        if server is None:
            raise IllegalStateError(
                "travel() needs a running broker in this process: leave process=True out of ottla_broker_settings"
            )

        def move() -> None:
            self._travelling.ahead_ms += ms

        # The turn after that in which it moves reads the new time and rings; the one behind that knows that it has.
        for work in (move, lambda: None, lambda: None):
            in_loop(server, work)


def span_ms(span: dict[str, float]) -> int:
    """Milliseconds of a span that is named as `timedelta` names it; ConfigError where it is none that can pass."""
    try:
        ms = round(timedelta(**span).total_seconds() * 1000)
    except (TypeError, OverflowError) as error:
        raise ConfigError(f"travel({asked(span)}): {error}; the words are timedelta's, such as hours=2") from None
    if ms <= 0:
        raise ConfigError(f"travel({asked(span)}) goes nowhere: time passes forwards, such as travel(hours=2)")
    return ms


def asked(span: dict[str, float]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in span.items())
