"""A broker of a history: what it has of each partition, what it knows of the metadata, and what it promises as a leader.

It acts on the metadata as far as it has applied them, which may be long ago. A record here is a pair of the leader's epoch and a number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from ottla.broker.replication.directories import has_all
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.topic import PartitionState
from ottla.coordination.controller.draft import UNASSIGNED
from ottla.protocol.schema import Message

Value = tuple[int, int]


@dataclass
class Leadership:
    """What a leader knows in one epoch of it."""

    epoch: int
    start: int
    """Where its log ended when it came to lead."""
    high_watermark: int
    fetched: dict[int, tuple[int, int]] = field(default_factory=dict)
    """How far each follower was when it fetched last, and in which epoch of the broker."""
    proposed: set[int] = field(default_factory=set)
    """Who may be in sync by a proposal whose fate is not known."""
    seen: int = -1
    """The partition's epoch at which the proposals were made."""


class ModelBroker:
    """Its log keeps what was forced to the disk over a loss of power; what is not may be lost."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.starts = self.disks = 0
        self.running = False
        self.reachable = True
        self.leaving = False
        self.epoch = -1
        self.clean_epoch = -1
        """What a clean stop leaves behind."""
        self.fenced = True
        self.metadata = ClusterMetadata()
        self.applied = 0
        """How many records of the metadata it knows."""
        self.logs: dict[int, list[Value]] = {}
        self.forced: dict[int, int] = {}
        self.watermarks: dict[int, int] = {}
        self.leaderships: dict[int, Leadership] = {}

    @property
    def incarnation(self) -> UUID:
        return UUID(int=1000 * self.number + self.starts)

    @property
    def directory(self) -> UUID:
        """An emptied disk is another one."""
        return UUID(int=200 + self.number + 1000 * self.disks)

    def start(self) -> None:
        self.starts += 1
        self.running, self.leaving, self.fenced, self.epoch = True, False, True, -1
        self.leaderships.clear()

    def stop_cleanly(self) -> None:
        """All is forced to the disk before the file is written that says so."""
        self.forced = {index: len(log) for index, log in self.logs.items()}
        self.clean_epoch = self.epoch
        self.running = False

    def crash(self, losing: bool) -> None:
        self.running, self.clean_epoch = False, -1
        for index, log in self.logs.items():
            if losing:
                del log[self.forced.get(index, 0) :]

    def lose_disk(self) -> None:
        """As it is found at the next start: empty."""
        self.crash(losing=False)
        self.disks += 1
        self.logs.clear()
        self.forced.clear()
        self.watermarks.clear()

    def untold(self, index: int) -> bool:
        """Whether the controllers are to hear that a copy is in the directory that it has now."""
        state = self.states()[index]
        if self.number not in state.replicas:
            return False
        believed = state.directories[state.replicas.index(self.number)]
        return believed != self.directory and (believed == UNASSIGNED or has_all(state, self.number))

    def apply(self, records: list[Message]) -> None:
        """Know of these records, and lead what they say."""
        for record in records:
            self.metadata.replay(record)
        self.applied += len(records)
        for index, state in enumerate(self.states()):
            known = self.leaderships.get(index)
            if state.leader != self.number or self.fresh(state) is False:
                self.leaderships.pop(index, None)
            elif known is None or known.epoch != state.leader_epoch:
                end = len(self.log(index))
                self.leaderships[index] = Leadership(state.leader_epoch, end, min(self.watermarks.get(index, 0), end))
            if index in self.leaderships and self.leaderships[index].seen != state.partition_epoch:
                self.leaderships[index].proposed, self.leaderships[index].seen = set(), state.partition_epoch

    def fresh(self, state: PartitionState) -> bool:
        """Whether the metadata that it knows tell of this incarnation, and not of the one before."""
        known = self.metadata.registrations.get(self.number)
        return known is not None and known.epoch == self.epoch

    def states(self) -> tuple[PartitionState, ...]:
        topic = self.metadata.topics.get("t")
        return () if topic is None else topic.partitions

    def log(self, index: int) -> list[Value]:
        return self.logs.setdefault(index, [])

    def maximal_isr(self, index: int) -> set[int]:
        """Who is in sync, and who may be."""
        return set(self.states()[index].isr) | self.leaderships[index].proposed

    def advance(self, index: int, min_isr: int) -> int:
        """Move the high watermark to what all in sync have; it stands while too few are."""
        leadership, state = self.leaderships[index], self.states()[index]
        if len(state.isr) >= min(min_isr, len(state.replicas)):
            ends = [leadership.fetched.get(each, (0, 0))[0] for each in self.maximal_isr(index) - {self.number}]
            leadership.high_watermark = max(leadership.high_watermark, min([*ends, len(self.log(index))]))
            self.watermarks[index] = leadership.high_watermark
        return leadership.high_watermark

    def fetch(self, leader: ModelBroker, index: int, most: int) -> None:
        """Have more of the leader's log; where the two part, cut, which is no progress."""
        leadership, own, theirs = leader.leaderships[index], self.log(index), leader.log(index)
        common = next(
            (at for at, (a, b) in enumerate(zip(own, theirs, strict=False)) if a != b), min(len(own), len(theirs))
        )
        if common < len(own):
            del own[common:]
            self.forced[index] = min(self.forced.get(index, 0), common)
            return
        leadership.fetched[self.number] = (len(own), self.epoch)
        own.extend(theirs[len(own) : len(own) + most])
        self.watermarks[index] = min(leadership.high_watermark, len(own))
