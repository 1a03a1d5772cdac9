"""The placement of new partitions: replicas are striped over the racks, and over the brokers of each rack. Pure.

    racks a: 1 2, b: 3 4, c: 5 6, replication factor 2         1 4 │ 3 6 │ 5 2 │ 2 3 │ 4 5 │ 6 1

The algorithm is Kafka's. The replicas of one partition are in successive racks, and each partition starts one rack
later, so that the leaders are spread too. Within a rack the brokers are used in rotation, unfenced ones before fenced
ones; the leader is always unfenced. After every broker has been a leader once, racks and brokers are shuffled, so that
different brokers share partitions. The first positions are drawn from a seed.

Difference from Kafka: leaders have a rotation of their own. With Kafka's single rotation and as many racks as brokers
per rack, only one broker of each rack becomes a leader.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, TypeVar

from ottla.coordination.cluster.topic_request import Refusal
from ottla.errors import ErrorCode

Item = TypeVar("Item")


class UsableBroker(NamedTuple):
    """A broker that may get new replicas."""

    broker_id: int
    rack: str | None
    is_fenced: bool


class SplitMix64:
    """A pseudorandom generator that depends on the seed alone (SplitMix64)."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def below(self, bound: int) -> int:
        """Return a number from 0 to `bound` - 1."""
        self._state = (self._state + 0x9E3779B97F4A7C15) % 2**64
        mixed = ((self._state ^ (self._state >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) % 2**64
        return (mixed ^ (mixed >> 31)) % bound

    def shuffle(self, items: list[Item]) -> None:
        for last in range(len(items) - 1, 0, -1):
            other = self.below(last + 1)
            items[last], items[other] = items[other], items[last]


class BrokerRotation:
    """The rotation of the brokers of a rack, with separate positions for leaders and followers."""

    def __init__(self, brokers: Sequence[int], draw: SplitMix64) -> None:
        self.brokers = sorted(brokers)
        self._leading = draw.below(len(brokers)) if brokers else 0
        self._following = self._leading + 1

    def next_leader(self) -> int:
        self._leading += 1
        return self.brokers[(self._leading - 1) % len(self.brokers)]

    def next_follower(self, taken: Collection[int]) -> int | None:
        """Return the next broker without a replica of the partition (not in `taken`); None if there is none."""
        for step in range(len(self.brokers)):
            broker = self.brokers[(self._following + step) % len(self.brokers)]
            if broker not in taken:
                self._following += step + 1
                return broker
        return None


class Rack:
    """The unfenced and the fenced brokers of a rack."""

    def __init__(self, brokers: Sequence[UsableBroker], draw: SplitMix64) -> None:
        self.unfenced = BrokerRotation([each.broker_id for each in brokers if not each.is_fenced], draw)
        self.fenced = BrokerRotation([each.broker_id for each in brokers if each.is_fenced], draw)

    def next_follower(self, taken: Collection[int]) -> int | None:
        """Return the next broker for a follower, a fenced one only if there is no other; None if all are taken."""
        present = self.unfenced.next_follower(taken)
        return self.fenced.next_follower(taken) if present is None else present

    def shuffle(self, draw: SplitMix64) -> None:
        draw.shuffle(self.unfenced.brokers)
        draw.shuffle(self.fenced.brokers)


def stripe_partitions(
    brokers: Sequence[UsableBroker], partitions: int, replication_factor: int, seed: int
) -> list[tuple[int, ...]]:
    """Return the replicas of each partition, its first leader first. Raise Refusal if there are too few brokers."""
    check_brokers(brokers, replication_factor)
    draw = SplitMix64(seed)
    names = sorted({each.rack for each in brokers}, key=lambda rack: (rack is not None, rack or ""))
    racks = [Rack([each for each in brokers if each.rack == name], draw) for name in names]
    present = sum(not each.is_fenced for each in brokers)
    first = draw.below(len(racks))
    placed = []
    for partition in range(partitions):
        if partition and partition % present == 0 and present > 1:
            draw.shuffle(racks)
            for rack in racks:
                rack.shuffle(draw)
        start = (first + partition) % len(racks)
        placed.append(stripe_replicas([*racks[start:], *racks[:start]], replication_factor))
    return placed


def stripe_replicas(racks: Sequence[Rack], replication_factor: int) -> tuple[int, ...]:
    """Return the replicas of one partition; `racks` start with the rack of the partition."""
    leading = next(number for number, rack in enumerate(racks) if rack.unfenced.brokers)
    replicas = [racks[leading].unfenced.next_leader()]
    # The leader's rack is skipped in the first round. A rack before it has only fenced brokers, and may have a follower.
    turn, passed = 0, False
    while len(replicas) < replication_factor:
        number = turn % len(racks)
        turn += 1
        if number == leading and not passed:
            passed = True
            continue
        another = racks[number].next_follower(replicas)
        if another is not None:
            replicas.append(another)
    return tuple(replicas)


def check_brokers(brokers: Sequence[UsableBroker], replication_factor: int) -> None:
    """Raise Refusal if the partitions cannot be placed."""
    fault = None
    if replication_factor <= 0:
        fault = f"{replication_factor} replicas: at least one, or -1 for the default"
    elif not brokers:
        fault = "no broker takes partitions unasked: on each of them `cordoned.log.dirs` has all directories"
    elif all(each.is_fenced for each in brokers):
        fault = "all brokers that take partitions unasked are fenced"
    elif replication_factor > len(brokers):
        count = "1 broker" if len(brokers) == 1 else f"{len(brokers)} brokers"
        fault = f"a replication factor of {replication_factor} needs as many brokers, and {count} can take replicas"
    if fault:
        raise Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, fault)
