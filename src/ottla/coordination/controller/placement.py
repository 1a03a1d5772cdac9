"""Where new partitions lie: striped over racks, and over the brokers of each. Pure.

    racks a: 1 2, b: 3 4, c: 5 6, two copies each         1 4 │ 3 6 │ 5 2 │ 2 3 │ 4 5 │ 6 1

As Kafka's placer has it: the copies of a partition go round the racks, and each partition begins one rack further, so that leaders are
spread as well. Within a rack its brokers take turns, those that are there before those that are fenced; who leads is there. Turns in leading
are counted apart (in Kafka as many racks as a rack has brokers let one broker of each lead alone). Once every broker has led, racks and
brokers are shuffled, lest the same brokers meet again and again. Where the rounds begin is drawn from a seed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, TypeVar

from ottla.coordination.cluster.topic_request import Refusal
from ottla.errors import ErrorCode

Item = TypeVar("Item")


class UsableBroker(NamedTuple):
    """A broker on which something may be put."""

    broker_id: int
    rack: str | None
    fenced: bool


class Draw:
    """Numbers that follow from a seed alone (SplitMix64)."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def below(self, bound: int) -> int:
        self._state = (self._state + 0x9E3779B97F4A7C15) % 2**64
        mixed = ((self._state ^ (self._state >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) % 2**64
        return (mixed ^ (mixed >> 31)) % bound

    def shuffle(self, items: list[Item]) -> None:
        for last in range(len(items) - 1, 0, -1):
            other = self.below(last + 1)
            items[last], items[other] = items[other], items[last]


class Ring:
    """Brokers that take turns: in leading, and apart from that in following."""

    def __init__(self, brokers: Sequence[int], draw: Draw) -> None:
        self.brokers = sorted(brokers)
        self._leading = draw.below(len(brokers)) if brokers else 0
        self._following = self._leading + 1

    def lead(self) -> int:
        self._leading += 1
        return self.brokers[(self._leading - 1) % len(self.brokers)]

    def follow(self, taken: Collection[int]) -> int | None:
        """Another broker for a partition that has a copy on those that are taken; None where all have one."""
        for step in range(len(self.brokers)):
            broker = self.brokers[(self._following + step) % len(self.brokers)]
            if broker not in taken:
                self._following += step + 1
                return broker
        return None


class Rack:
    """Those that are there, and those that are fenced."""

    def __init__(self, brokers: Sequence[UsableBroker], draw: Draw) -> None:
        self.present = Ring([each.broker_id for each in brokers if not each.fenced], draw)
        self.fenced = Ring([each.broker_id for each in brokers if each.fenced], draw)

    def follow(self, taken: Collection[int]) -> int | None:
        present = self.present.follow(taken)
        return self.fenced.follow(taken) if present is None else present

    def shuffle(self, draw: Draw) -> None:
        draw.shuffle(self.present.brokers)
        draw.shuffle(self.fenced.brokers)


def place(brokers: Sequence[UsableBroker], partitions: int, copies: int, seed: int) -> list[tuple[int, ...]]:
    """The replicas of each partition, the one that is to lead first; Refusal where there are too few brokers."""
    check(brokers, copies)
    draw = Draw(seed)
    names = sorted({each.rack for each in brokers}, key=lambda rack: (rack is not None, rack or ""))
    racks = [Rack([each for each in brokers if each.rack == name], draw) for name in names]
    present = sum(not each.fenced for each in brokers)
    first = draw.below(len(racks))
    placed = []
    for partition in range(partitions):
        if partition and partition % present == 0 and present > 1:
            draw.shuffle(racks)
            for rack in racks:
                rack.shuffle(draw)
        start = (first + partition) % len(racks)
        placed.append(striped([*racks[start:], *racks[:start]], copies))
    return placed


def striped(racks: Sequence[Rack], copies: int) -> tuple[int, ...]:
    """The brokers of one partition, from the first rack on."""
    leading = next(number for number, rack in enumerate(racks) if rack.present.brokers)
    replicas = [racks[leading].present.lead()]
    # The rack that has the leader is passed over in the first round; a rack before it, which has nobody who could lead, is not.
    turn, passed = 0, False
    while len(replicas) < copies:
        number = turn % len(racks)
        turn += 1
        if number == leading and not passed:
            passed = True
            continue
        another = racks[number].follow(replicas)
        if another is not None:
            replicas.append(another)
    return tuple(replicas)


def check(brokers: Sequence[UsableBroker], copies: int) -> None:
    """Refuse what cannot be placed."""
    fault = None
    if copies <= 0:
        fault = f"{copies} replicas: at least one, or -1 for the default"
    elif not brokers:
        fault = (
            "no broker takes partitions unasked: each is about to stop, or all its directories are cordoned, as those of "
            "a broker of Ottla's that joins a cluster unless its `cordoned.log.dirs` is set and empty"
        )
    elif all(each.fenced for each in brokers):
        fault = "all brokers that take partitions unasked are fenced"
    elif copies > len(brokers):
        fault = (
            f"{copies} replicas cannot be put on {len(brokers)} broker(s) that have a directory which is not cordoned"
        )
    if fault:
        raise Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, fault)
