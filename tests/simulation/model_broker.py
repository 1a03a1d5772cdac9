"""A model of a broker: its replicas, its applied metadata, and its acknowledgements as a leader.

It acts on the metadata that it has applied, which may be old. A record is a pair of the leader's epoch and a number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from ottla.broker.replica_manager.directory_assignments import has_all
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.topic import PartitionState
from ottla.coordination.controller.draft import UNASSIGNED
from ottla.protocol.schema import Message

Value = tuple[int, int]


@dataclass
class Leadership:
    """The state of a leader in one epoch."""

    epoch: int
    start: int
    """The log end at the start of the leadership."""
    high_watermark: int
    fetched: dict[int, tuple[int, int]] = field(default_factory=dict)
    """The offset of each follower at its last fetch, and its broker epoch."""
    proposed: set[int] = field(default_factory=set)
    """Brokers that may be in the ISR by a proposal with an unknown outcome."""
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
        """The broker epoch that a clean stop stores."""
        self.fenced = True
        self.metadata = ClusterMetadata()
        self.applied = 0
        """The number of applied metadata records."""
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
        """Everything is flushed before the clean shutdown mark is written."""
        self.forced = {index: len(log) for index, log in self.logs.items()}
        self.clean_epoch = self.epoch
        self.running = False

    def crash(self, losing: bool) -> None:
        self.running, self.clean_epoch = False, -1
        for index, log in self.logs.items():
            if losing:
                del log[self.forced.get(index, 0) :]

    def lose_disk(self) -> None:
        """Crash; at the next start the disk is empty."""
        self.crash(losing=False)
        self.disks += 1
        self.logs.clear()
        self.forced.clear()
        self.watermarks.clear()

    def untold(self, index: int) -> bool:
        """True if the controllers must be notified of the current directory of a replica."""
        state = self.states()[index]
        if self.number not in state.replicas:
            return False
        believed = state.directories[state.replicas.index(self.number)]
        return believed != self.directory and (believed == UNASSIGNED or has_all(state, self.number))

    def apply(self, records: list[Message]) -> None:
        """Apply these records, and lead the partitions in them."""
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
        """True if the known metadata contain this incarnation."""
        known = self.metadata.registrations.get(self.number)
        return known is not None and known.epoch == self.epoch

    def states(self) -> tuple[PartitionState, ...]:
        topic = self.metadata.topics.get("t")
        return () if topic is None else topic.partitions

    def log(self, index: int) -> list[Value]:
        return self.logs.setdefault(index, [])

    def maximal_isr(self, index: int) -> set[int]:
        """Return the ISR with proposed members."""
        return set(self.states()[index].isr) | self.leaderships[index].proposed

    def advance(self, index: int, min_isr: int) -> int:
        """Advance the high watermark to the end that all ISR members have; it stays while the ISR is too small."""
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
