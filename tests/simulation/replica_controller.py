"""The controller of one partition: a model of Kafka's rules for elections and in-sync sets, and the oracle of the histories.

In sync is who the leader says; who falls out while fewer than `min.insync.replicas` are left stays eligible to lead (KIP-966), for it
has all that is committed. Who comes back from an unclean stop is neither: it may have lost what was not on its disk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from ottla.coordination.replication.assignment import Assignment, LiveBrokers
from ottla.coordination.replication.leader import Proposal, Refusal
from tests.simulation.world import World

NOBODY = -1
SESSION = 3.0
"""Seconds without a heartbeat after which a broker is fenced."""


@dataclass(slots=True)
class Registration:
    """A broker as the controller knows it."""

    epoch: int
    heard_at: float
    directory: int
    """That it has; another disk is another directory."""
    fenced: bool = True


@dataclass(frozen=True, slots=True)
class Image:
    """What the metadata log says up to an offset."""

    offset: int
    assignment: Assignment
    brokers: LiveBrokers
    directories: Mapping[int, int]
    """Where the copies are, as was told last."""


@dataclass
class Controller:
    """Decides at once, and tells everybody in order, sooner or later."""

    world: World
    assignment: Assignment
    eligible: frozenset[int] = frozenset()
    registered: dict[int, Registration] = field(default_factory=dict)
    directories: dict[int, int] = field(default_factory=dict)
    """Where each copy is, by its broker: who does not have that directory does not lead (KIP-858)."""
    offset: int = 0
    listeners: list[Any] = field(default_factory=list)

    def register(self, broker: int, directory: int, *, clean: bool) -> int:
        """A broker has started; its epoch."""
        self.offset += 1
        epoch = self.offset
        self.registered[broker] = Registration(epoch, self.world.now, directory)
        self.directories.setdefault(broker, directory)
        if not clean:
            self.change(in_sync=self.assignment.in_sync - {broker}, eligible=self.eligible - {broker})
        self.tell()
        return epoch

    def heartbeat(self, broker: int, epoch: int, *, ready: bool) -> bool:
        """A broker lives; whether it is the one that is registered."""
        known = self.registered.get(broker)
        if known is None or known.epoch != epoch:
            return False
        known.heard_at = self.world.now
        if known.fenced and ready:
            known.fenced = False
            self.change()
            self.tell()
        return True

    def assign(self, broker: int, epoch: int, directory: int) -> None:
        """AssignReplicasToDirs: a broker says where its copy is."""
        known = self.registered.get(broker)
        if known is not None and known.epoch == epoch and self.directories[broker] != directory:
            self.directories[broker] = directory
            self.change()
            self.tell()

    def fence_the_silent(self) -> None:
        """Those who were not heard of for a session do not lead any more."""
        for broker, known in self.registered.items():
            if not known.fenced and self.world.now - known.heard_at > SESSION:
                known.fenced = True
                self.world.say("controller", "fences", broker)
                self.change(in_sync=self.assignment.in_sync - {broker})
                self.tell()

    def alive(self) -> LiveBrokers:
        """The epochs of those who are not fenced."""
        return LiveBrokers({broker: known.epoch for broker, known in self.registered.items() if not known.fenced})

    def alter(self, leader: int, proposal: Proposal) -> Refusal | None:
        """AlterPartition: Kafka's checks in Kafka's order."""
        now = self.assignment
        if leader != now.leader or proposal.leader_epoch != now.leader_epoch:
            return Refusal.OF_EPOCHS
        if proposal.partition_epoch != now.partition_epoch:
            return Refusal.OF_EPOCHS
        if not proposal.in_sync <= set(now.replicas) or leader not in proposal.in_sync:
            return Refusal.OF_EPOCHS
        alive = self.alive()
        if not all(alive.may_join(id_, epoch) for id_, epoch in proposal.broker_epochs.items()):
            return Refusal.OF_MEMBERS
        self.change(in_sync=proposal.in_sync)
        self.tell()
        return None

    def change(self, in_sync: frozenset[int] | None = None, eligible: frozenset[int] | None = None) -> None:
        """One step of the partition: who may lead after it, and who does. Kafka's PartitionChangeBuilder."""
        before = self.assignment
        wanted = before.in_sync if in_sync is None else in_sync
        may_lead = (self.eligible if eligible is None else eligible) - wanted
        if len(wanted) < before.quorum:
            may_lead |= before.in_sync - wanted if eligible is None else frozenset()
        else:
            may_lead = frozenset()
        leader, wanted, may_lead = self._elect(before, wanted, may_lead)
        after = replace(
            before,
            leader=leader,
            in_sync=wanted,
            leader_epoch=before.leader_epoch + (leader != before.leader),
        )
        if after != before or may_lead != self.eligible:
            self.assignment = replace(after, partition_epoch=before.partition_epoch + 1)
            self.eligible = may_lead
            self.world.say("controller", self.assignment, sorted(may_lead))

    def _elect(
        self, before: Assignment, in_sync: frozenset[int], eligible: frozenset[int]
    ) -> tuple[int, frozenset[int], frozenset[int]]:
        alive = {id_ for id_ in self.alive().epochs if self.registered[id_].directory == self.directories[id_]}
        if before.leader in in_sync and before.leader in alive:
            return before.leader, in_sync, eligible
        for replica in before.replicas:
            if replica in in_sync and replica in alive:
                return replica, in_sync, eligible
        for replica in before.replicas:
            if not in_sync and replica in eligible and replica in alive:
                return replica, frozenset({replica}), eligible - {replica}
        return NOBODY, in_sync, eligible

    def tell(self) -> None:
        """Everybody who listens hears of it, each in its time."""
        self.offset += 1
        image = Image(self.offset, self.assignment, self.alive(), dict(self.directories))
        for listener in self.listeners:
            listener(image)
