"""A cluster for the checker, in which the brokers are killed one after the other; the controllers are not killed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle

from rivals.kafka_cluster import Node
from tests.checker.generator import Crash


class MixedVictim:
    """The cluster as the checker's victim. All brokers run at the start and at the end."""

    def __init__(self, address: str, nodes: Sequence[Node], settle: Callable[[], None]) -> None:
        """Call `settle` before each kill.

        It waits until all replicas are in sync, since the victim may hold the only other one.
        """
        self.address = address
        self.deaths = 0
        self._turns = cycle(nodes)
        self._settle = settle
        self._dead: Node | None = None

    def start(self, crash: Crash | None = None) -> None:
        if self._dead is not None:
            self._dead.start()
            self._dead.wait_until_in()
            self._settle()
            self._dead = None

    def kill(self) -> None:
        self._dead = next(self._turns)
        self._dead.kill()
        self.deaths += 1

    def is_dead(self, timeout: float) -> bool:
        """Return False: a broker never dies by itself."""
        return False

    def wait(self) -> None:
        """Return at once: the broker is dead when `kill` returns."""
