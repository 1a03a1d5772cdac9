"""The sequence of faults of a run, drawn from a seed. This module only computes it and has no side effects."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from interop.splits.network import CLIENTS

Pairs = list[tuple[int, int]]
"""Pairs of node ids: frames from the first node do not reach the second."""


class Fault(msgspec.Struct, frozen=True):
    """A fault of one kind and its duration."""

    kind: str
    node: int
    other: int
    """The second node of a pair; for a fault with two victims, the second victim."""
    seconds: float

    def __str__(self) -> str:
        return f"{self.kind} {self.node} {self.other} {self.seconds:.0f} s"

    def cuts(self, nodes: Sequence[int]) -> Pairs:
        """Return the pairs of nodes that cannot communicate during this fault, by direction."""
        return KINDS[self.kind](self, nodes)


def both(pairs: Pairs) -> Pairs:
    return pairs + [(other, one) for one, other in pairs]


def other_nodes(fault: Fault, nodes: Sequence[int]) -> list[int]:
    return [each for each in nodes if each != fault.node]


KINDS: Mapping[str, Callable[[Fault, Sequence[int]], Pairs]] = {
    # Separated from the other nodes, while clients reach it as before.
    "apart": lambda fault, nodes: both([(fault.node, each) for each in other_nodes(fault, nodes)]),
    # Separated from all hosts.
    "gone": lambda fault, nodes: both([(fault.node, each) for each in [*other_nodes(fault, nodes), CLIENTS]]),
    # It receives nothing from the other nodes, but they receive from it.
    "deaf": lambda fault, nodes: [(each, fault.node) for each in other_nodes(fault, nodes)],
    # The opposite direction.
    "mute": lambda fault, nodes: [(fault.node, each) for each in other_nodes(fault, nodes)],
    # It executes clients' requests, but its responses do not arrive.
    "unheard": lambda fault, nodes: [(fault.node, each) for each in [*other_nodes(fault, nodes), CLIENTS]],
    # Two nodes do not reach each other; all other hosts reach both.
    "pair": lambda fault, nodes: both([(fault.node, fault.other)]),
    # No partition: the node is killed, or is stopped by SIGSTOP, and starts or continues later.
    "killed": lambda fault, nodes: [],
    "frozen": lambda fault, nodes: [],
}
SPLITS = ("apart", "gone", "deaf", "mute", "unheard", "pair")


def drawn(seed: int, count: int, nodes: Sequence[int], spans: Sequence[float], kinds: Sequence[str]) -> Iterator[Fault]:
    """Yield `count` faults, with an equal number for each duration in `spans`."""
    chance = random.Random(seed)
    for number in range(count):
        node, other = chance.sample(list(nodes), 2)
        yield Fault(chance.choice(list(kinds)), node, other, spans[number % len(spans)])
