"""The controller of one partition: a model of Kafka's rules for elections and the ISR, and the oracle of the histories.

The leader decides the ISR. A replica that leaves it while fewer than `min.insync.replicas` remain stays eligible to lead (KIP-966),
because it has every committed record. A replica that returns from an unclean stop is neither in the ISR nor eligible: it may have
lost unflushed records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from ottla.coordination.replication.assignment import LiveBrokers, ReplicaAssignment
from ottla.coordination.replication.leader import Proposal, ProposalRejection
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
    """The state of the metadata log up to an offset."""

    offset: int
    assignment: ReplicaAssignment
    brokers: LiveBrokers
    directories: Mapping[int, int]
    """The directories of the replicas, as last reported."""


@dataclass
class Controller:
    """A controller that decides at once, and notifies every broker in order, soon or late."""

    world: World
    assignment: ReplicaAssignment
    eligible: frozenset[int] = frozenset()
    registered: dict[int, Registration] = field(default_factory=dict)
    directories: dict[int, int] = field(default_factory=dict)
    """The directory of each replica, by broker: a broker without that directory does not lead (KIP-858)."""
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
        self.publish_image()
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
            self.publish_image()
        return True

    def assign(self, broker: int, epoch: int, directory: int) -> None:
        """AssignReplicasToDirs: a broker reports the directory of its replica."""
        known = self.registered.get(broker)
        if known is not None and known.epoch == epoch and self.directories[broker] != directory:
            self.directories[broker] = directory
            self.change()
            self.publish_image()

    def fence_the_silent(self) -> None:
        """Fence brokers without a heartbeat for a session."""
        for broker, known in self.registered.items():
            if not known.fenced and self.world.now - known.heard_at > SESSION:
                known.fenced = True
                self.world.say("controller", "fences", broker)
                self.change(in_sync=self.assignment.in_sync - {broker})
                self.publish_image()

    def alive(self) -> LiveBrokers:
        """Return the epochs of unfenced brokers."""
        return LiveBrokers({broker: known.epoch for broker, known in self.registered.items() if not known.fenced})

    def alter(self, leader: int, proposal: Proposal) -> ProposalRejection | None:
        """AlterPartition: Kafka's checks in Kafka's order."""
        now = self.assignment
        if leader != now.leader or proposal.leader_epoch != now.leader_epoch:
            return ProposalRejection.OF_EPOCHS
        if proposal.partition_epoch != now.partition_epoch:
            return ProposalRejection.OF_EPOCHS
        if not proposal.in_sync <= set(now.replicas) or leader not in proposal.in_sync:
            return ProposalRejection.OF_EPOCHS
        alive = self.alive()
        if not all(alive.can_join(id_, epoch) for id_, epoch in proposal.broker_epochs.items()):
            return ProposalRejection.OF_MEMBERS
        self.change(in_sync=proposal.in_sync)
        self.publish_image()
        return None

    def change(self, in_sync: frozenset[int] | None = None, eligible: frozenset[int] | None = None) -> None:
        """Change the partition: eligible leaders and the leader. Kafka's PartitionChangeBuilder."""
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
        self, before: ReplicaAssignment, in_sync: frozenset[int], eligible: frozenset[int]
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

    def publish_image(self) -> None:
        """Notify every listener, each after its own delay."""
        self.offset += 1
        image = Image(self.offset, self.assignment, self.alive(), dict(self.directories))
        for listener in self.listeners:
            listener(image)
