"""A cluster whose brokers are killed one after the other, for the checker; its controllers are not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle

from rivals.kafka_cluster import Node
from tests.checker.generator import Crash


class MixedVictim:
    """Brokers that are running when it begins, and when it ends."""

    def __init__(self, address: str, nodes: Sequence[Node], settle: Callable[[], None]) -> None:
        """`settle` waits until no copy is behind: who is killed next may be the only other one."""
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
        """None of them dies by itself."""
        return False

    def wait(self) -> None:
        """It is dead when `kill` returns."""
