"""The roles of this broker's replicas, leader or follower: applied one after the other, in steps.

A role with an open log is applied at once. Opening a log takes a millisecond, or much more after a crash, and the
metadata may assign thousands to a broker at once; these are queued, and between two steps of `STRETCH_SECONDS` the loop
serves its clients. A queued replica is neither led nor followed: clients get an error that they retry.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol
from uuid import UUID

from ottla.broker.event_loop.timers import Timers
from ottla.broker.replica_manager.fetch_purgatory import FetchPurgatory
from ottla.broker.replica_manager.isr_changes import IsrChanges
from ottla.broker.replica_manager.leadership import Leadership
from ottla.broker.replica_manager.log_flusher import LogFlusher
from ottla.broker.replica_manager.partition import Partition
from ottla.broker.replica_manager.replica_healing import RELIEF_SECONDS, ReplicaRepair
from ottla.broker.settings.config import BrokerConfig
from ottla.clock import Clock
from ottla.coordination.cluster.topic import ClusterTopic, PartitionState
from ottla.coordination.replication.assignment import LiveBrokers, ReplicaAssignment
from ottla.coordination.replication.fetch_session import ReplicaPlace
from ottla.errors import KafkaError
from ottla.model import INT64_MAX
from ottla.storage.batches.damage import Damage, OfflineError, OutOfServiceError

if TYPE_CHECKING:
    from ottla.broker.replica_manager.followed_partition import FollowedPartition
    from ottla.broker.replica_manager.replica_fetcher import LeaderFetcher

log = logging.getLogger(__name__)
STRETCH_SECONDS = 0.02
AGAIN_SECONDS = 5.0
HEIR_LOOK_SECONDS = 0.5
NOWHERE = -1
"""The offset of the damage of a replica that cannot be used at all."""
Lead = Callable[[Partition, ReplicaAssignment, LiveBrokers, Callable[[Leadership], None]], None]
"""Leads a partition; the last argument is called when the ISR may have to change."""


class ReplicaRole(NamedTuple):
    """The role of a replica in the metadata."""

    partition: Partition
    topic: ClusterTopic
    state: PartitionState

    @property
    def place(self) -> ReplicaPlace:
        return ReplicaPlace(self.topic.topic_id, self.state.index)


class RoleListener(Protocol):
    """The coordinators, which keep their state in partitions that this broker leads."""

    def led(self, partition: Partition) -> None:
        """Handle that this broker leads a partition, at each change of its metadata."""

    def lost(self, partition: Partition) -> None:
        """Handle that this broker does not lead a partition any more."""


class RoleRecovery(Protocol):
    """What is done about roles that could not be applied."""

    def apply_again(self, topic_id: UUID) -> None:
        """Apply a topic's metadata again, some seconds after one of its roles could not be applied."""

    def leave_isr(self, topic: ClusterTopic, state: PartitionState) -> None:
        """Request that a damaged replica leaves the ISR, since others are intact."""


class ReplicaRoles:
    """Called in the loop alone."""

    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        lead: Lead,
        fetcher: Callable[[int], LeaderFetcher],
        isr_changes: IsrChanges,
        listener: RoleListener,
        recovery: RoleRecovery,
        waiting: FetchPurgatory,
        flusher: LogFlusher,
        timers: Timers,
        clock: Clock,
    ) -> None:
        """`fetcher` creates the fetcher for a leader; `listener` is notified of roles, `recovery` of failures."""
        self._config = config
        self._lead = lead
        self._fetcher = fetcher
        self._isr_changes = isr_changes
        self._listener = listener
        self._recovery = recovery
        self._waiting = waiting
        self._flusher = flusher
        self._timers = timers
        self._clock = clock
        self._me = config().node_id
        self.brokers = LiveBrokers()
        self._fetchers: dict[int, LeaderFetcher] = {}
        self._followed: dict[ReplicaPlace, FollowedPartition] = {}
        self._healings: dict[ReplicaPlace, ReplicaRepair] = {}
        self._waiting_roles: dict[ReplicaPlace, ReplicaRole] = {}
        self._is_to_go_on = False

    def assign(self, partition: Partition, topic: ClusterTopic, state: PartitionState) -> None:
        """Apply a role: at once, or when `assign_next` reaches it if its log may have to be opened."""
        role = ReplicaRole(partition, topic, state)
        self._waiting_roles.pop(role.place, None)
        is_only_replica = state.leader == self._me and len(state.replicas) == 1
        if partition.opened_log is None and not is_only_replica:
            self._waiting_roles[role.place] = role
        else:
            self._assign_or_retry(role)

    def remove(self, place: ReplicaPlace) -> None:
        self._waiting_roles.pop(place, None)
        self._healings.pop(place, None)
        self._stop_following(place)

    def is_waiting_for_leader(self, partition: Partition) -> bool:
        """Return True if readers of a damaged part should retry with another broker, which may lead in a moment."""
        place = ReplicaPlace(partition.topic_id, partition.topic_partition.partition)
        leadership = partition.leadership
        if leadership is None:
            return place in self._followed
        others = (leadership.machine.assignment.in_sync & leadership.brokers.epochs.keys()) - {self._me}
        healing = self._find_repair(place)
        damage = healing.find_damage(partition.log, self._me)
        if damage is None or not others:
            return False
        return not healing.has_attempted(damage, others) or healing.is_waiting_for_leader(self._clock.monotonic())

    def relocate(self, partition: Partition) -> None:
        """Continue a role with the partition's new log, in another directory."""
        followed = self._followed.get(ReplicaPlace(partition.topic_id, partition.topic_partition.partition))
        if followed is not None and followed.partition is partition:
            followed.log = partition.log
            self._handle_isr(followed, followed.in_sync)

    def assign_next(self) -> None:
        """Apply queued roles, for one step; the rest in later turns of the loop."""
        end = self._clock.monotonic() + STRETCH_SECONDS
        while self._waiting_roles and self._clock.monotonic() < end:
            self._assign_or_retry(self._pop_next())
        if self._waiting_roles and not self._is_to_go_on:
            self._is_to_go_on = True
            self._timers.schedule(self._clock.monotonic(), self._schedule)

    def assign_all(self) -> None:
        """Apply all queued roles now."""
        while self._waiting_roles:
            self._assign_or_retry(self._pop_next())

    def close(self) -> None:
        self._waiting_roles.clear()
        for fetcher in self._fetchers.values():
            fetcher.close()
        self._fetchers.clear()

    def update_brokers(self, brokers: LiveBrokers, partitions: Iterable[Partition]) -> None:
        self.brokers = brokers
        for partition in partitions:
            if partition.leadership is not None:
                partition.leadership.update_brokers(brokers)
        self.watch(partitions)

    def watch(self, partitions: Iterable[Partition]) -> None:
        """Find followers that lag without fetching."""
        for partition in partitions:
            if partition.leadership is not None:
                partition.leadership.advance(self._clock.monotonic())
                self._isr_changes.propose(partition.leadership)

    def _schedule(self) -> None:
        self._is_to_go_on = False
        self.assign_next()

    def _pop_next(self) -> ReplicaRole:
        return self._waiting_roles.pop(next(iter(self._waiting_roles)))

    def _assign_or_retry(self, role: ReplicaRole) -> None:
        try:
            self._assign_role(role)
        except OfflineError:
            pass  # logged with its directory
        except KafkaError as error:
            if role.partition.fault is None:  # else that was logged
                log.error("%s is out of service: %s", role.partition.topic_partition, error.reason)
            elif role.state.leader != self._me or len(role.state.replicas) == 1:
                return  # others lead it, or no other can
            self._try_again(role)
        except Exception:  # of one partition: the others are processed
            log.exception("applying the metadata to a partition failed, and is retried partition=%s", role.partition)
            self._try_again(role)

    def _try_again(self, role: ReplicaRole) -> None:
        again = self._clock.monotonic() + AGAIN_SECONDS
        self._timers.schedule(again, lambda: self._recovery.apply_again(role.topic.topic_id))

    def _assign_role(self, role: ReplicaRole) -> None:
        """Apply a role: lead or follow. A partition without a leader waits."""
        partition, topic, state = role
        partition.replicated = partition.replicated or len(state.replicas) > 1  # before anything opens its log
        if self._has_stepped_down(role):
            return
        if state.leader == self._me:
            self._stop_following(role.place)
            self._become_leader(partition, self._build_assignment(topic, state))
            return
        known = self._followed.get(role.place)
        if known is not None and (known.leader, known.machine.leader_epoch) == (state.leader, state.leader_epoch):
            self._handle_isr(known, self._is_counted_on(state))
            return
        from ottla.broker.replica_manager.followed_partition import (
            become_follower,  # a node without others never follows
        )

        self._stop_following(role.place)
        led = partition.leads
        become_follower(partition, state.leader_epoch, self._waiting, self._clock)
        if led:
            self._listener.lost(partition)
        if state.leader >= 0:
            self._become_follower(partition, state.leader, self._is_counted_on(state))

    def _has_stepped_down(self, role: ReplicaRole) -> bool:
        """Request that other brokers replace a damaged replica. True if it must not lead meanwhile.

        A replica that leads already continues to lead: the other logs are the same, except for the damage.
        """
        partition, topic, state = role
        others = sorted(each for each in state.isr if each != self._me and each in self.brokers.epochs)
        heir = None if others else state.find_complete_replica(self._me)
        if self._me not in state.isr or not (others or heir):
            return False  # this log may be one of thousands, and is not opened for the check
        healing, now = self._find_repair(role.place), self._clock.monotonic()
        damage = find_known_damage(partition, healing, state.leader)
        if damage is None and state.leader == self._me:
            damage = partition.log.fallen_short
        if damage is None:
            return False
        if heir is not None and heir not in self.brokers.epochs:
            return self._is_waiting_for_complete_replica(role, healing)
        if healing.record_attempt(damage, others if heir is None else [heir], now):
            log.warning(
                "%s is damaged on this broker: %s", partition, describe_handover(partition, others, heir, damage)
            )
            self._recovery.leave_isr(topic, state)
            self._timers.schedule(now + RELIEF_SECONDS, lambda: self._recovery.apply_again(topic.topic_id))
        return state.leader == self._me and partition.leadership is None and healing.is_waiting_for_leader(now)

    def _is_waiting_for_complete_replica(self, role: ReplicaRole, healing: ReplicaRepair) -> bool:
        """Return True if no broker is to lead for now, since the complete replica is away."""
        now = self._clock.monotonic()
        waits = role.partition.leadership is None and healing.is_waiting_for_complete_replica(now)
        if waits:
            self._timers.schedule(now + HEIR_LOOK_SECONDS, lambda: self._recovery.apply_again(role.topic.topic_id))
        return waits

    def _is_counted_on(self, state: PartitionState) -> bool:
        """Return True if the controllers may elect this replica as it is."""
        return self._me in state.isr or self._me in state.elr

    def _find_repair(self, place: ReplicaPlace) -> ReplicaRepair:
        healing = self._healings.get(place)
        if healing is None:
            healing = self._healings[place] = ReplicaRepair()
        return healing

    def _handle_isr(self, followed: FollowedPartition, in_sync: bool) -> None:
        if followed.update_isr(in_sync=in_sync):
            self._fetchers[followed.leader].add(followed)

    def _become_leader(self, partition: Partition, assignment: ReplicaAssignment) -> None:
        if len(assignment.replicas) == 1 and partition.is_unused:
            partition.lead_alone(assignment.leader_epoch, assignment.quorum)
            self._listener.led(partition)
            return
        self._lead(partition, assignment, self.brokers, self._isr_changes.propose)
        partition.log.fallen_short = None  # From now on these records are all that the log has.
        if partition.leadership is not None:
            self._isr_changes.propose(partition.leadership)
        self._listener.led(partition)

    def _become_follower(self, partition: Partition, leader: int, in_sync: bool) -> None:
        from ottla.broker.replica_manager.followed_partition import FollowedPartition

        healing = self._find_repair(ReplicaPlace(partition.topic_id, partition.topic_partition.partition))
        followed = FollowedPartition(
            partition, leader, self._clock, self._flusher, self._waiting, healing, in_sync=in_sync
        )
        self._followed[followed.place] = followed
        if leader not in self._fetchers:
            self._fetchers[leader] = self._fetcher(leader)
        self._fetchers[leader].add(followed)

    def _stop_following(self, place: ReplicaPlace) -> None:
        followed = self._followed.pop(place, None)
        if followed is not None:
            self._fetchers[followed.leader].remove(place)

    def _build_assignment(self, topic: ClusterTopic, state: PartitionState) -> ReplicaAssignment:
        in_sync = int(topic.configs.get("min.insync.replicas", self._config().min_insync_replicas))
        return ReplicaAssignment(
            state.leader, state.leader_epoch, state.partition_epoch, state.replicas, frozenset(state.isr), in_sync
        )


def describe_handover(partition: Partition, others: Sequence[int], heir: int | None, damage: Damage) -> str:
    """Return the log text of the request to remove a damaged replica from the ISR."""
    again = "" if partition.fault else f", to be fetched again: {damage}"
    if heir is not None:
        return f"requesting that broker {heir}, which had every record when it was killed, becomes leader and that this replica leaves the ISR{again}"
    named = ", ".join(f"broker {each}" for each in others)
    return f"it is intact on other replicas of the ISR, {named}; requesting that this replica leaves the ISR{again}"


def find_known_damage(partition: Partition, healing: ReplicaRepair, leader: int) -> Damage | None:
    """Return the known damage of a replica that its leader does not share; all of it if the replica is out of service."""
    try:
        return healing.find_damage(partition.log, leader)
    except OfflineError:
        raise
    except OutOfServiceError:
        return Damage(Path(), 0, 0, NOWHERE, INT64_MAX, "it is out of service")
