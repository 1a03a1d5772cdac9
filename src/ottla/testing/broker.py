"""The broker of the plugin: an `ottla.Broker` with which things can go wrong."""

from __future__ import annotations

from typing import Any

from ottla.broker.embedded import Broker
from ottla.testing.faults.faults import Faults


class TestedBroker(Broker):
    """What `ottla_broker` is."""

    __test__ = False  # pytest takes it for no test

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.faults = Faults(lambda: self.server)
        """What goes wrong on purpose; undone after each test."""
