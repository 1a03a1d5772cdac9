"""What befalls a cluster, one thing after the other: drawn from a seed, and nothing is done here."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from interop.splits.network import CLIENTS

Pairs = list[tuple[int, int]]
"""Of whom the second does not hear the first."""


class Fault(msgspec.Struct, frozen=True):
    """One thing, and for how long."""

    kind: str
    node: int
    other: int
    """Of a pair; of a victim with company, who goes with it."""
    seconds: float

    def __str__(self) -> str:
        return f"{self.kind} {self.node} {self.other} {self.seconds:.0f} s"

    def cuts(self, nodes: Sequence[int]) -> Pairs:
        """Who is not heard by whom meanwhile."""
        return KINDS[self.kind](self, nodes)


def both(pairs: Pairs) -> Pairs:
    return pairs + [(other, one) for one, other in pairs]


def others(fault: Fault, nodes: Sequence[int]) -> list[int]:
    return [each for each in nodes if each != fault.node]


KINDS: Mapping[str, Callable[[Fault, Sequence[int]], Pairs]] = {
    # From the other nodes, while clients reach it as before.
    "apart": lambda fault, nodes: both([(fault.node, each) for each in others(fault, nodes)]),
    # From everybody.
    "gone": lambda fault, nodes: both([(fault.node, each) for each in [*others(fault, nodes), CLIENTS]]),
    # It hears nothing of the other nodes, and they hear it.
    "deaf": lambda fault, nodes: [(each, fault.node) for each in others(fault, nodes)],
    # The other way round.
    "mute": lambda fault, nodes: [(fault.node, each) for each in others(fault, nodes)],
    # It does what clients ask, and they never hear.
    "unheard": lambda fault, nodes: [(fault.node, each) for each in [*others(fault, nodes), CLIENTS]],
    # Two do not reach each other, and whoever else there is reaches both.
    "pair": lambda fault, nodes: both([(fault.node, fault.other)]),
    # No split: it dies, or is stopped where it stands, and comes back.
    "killed": lambda fault, nodes: [],
    "frozen": lambda fault, nodes: [],
}
SPLITS = ("apart", "gone", "deaf", "mute", "unheard", "pair")


def drawn(seed: int, count: int, nodes: Sequence[int], spans: Sequence[float], kinds: Sequence[str]) -> Iterator[Fault]:
    """So many, of each span as often as of any other."""
    chance = random.Random(seed)
    for number in range(count):
        node, other = chance.sample(list(nodes), 2)
        yield Fault(chance.choice(list(kinds)), node, other, spans[number % len(spans)])
