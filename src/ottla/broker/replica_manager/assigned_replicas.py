"""Apply the metadata to this broker's replicas: open, lead, follow and delete them (Kafka's ReplicaManager.applyDelta).

    metadata ──► changes ──► led here: lead ──► ISR proposed ──► controllers
                         ──► led by another broker: follow ──► one fetcher for each leader
                         ──► no longer here: files deleted

Nothing is done before the broker has caught up with the metadata: on the way a partition may belong to another broker
that is this broker's in the end, and its log would be deleted. For the same reason a folder that belongs to no
partition is kept at a start, and logged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from ottla.broker.event_loop.timers import Timers, repeat
from ottla.broker.metadata.observed_metadata import ObservedMetadata
from ottla.broker.replica_manager.directory_assignments import DirectoryAssignments
from ottla.broker.replica_manager.fetch_purgatory import FetchPurgatory
from ottla.broker.replica_manager.isr_changes import IsrChanges
from ottla.broker.replica_manager.log_flusher import LogFlusher
from ottla.broker.replica_manager.partition import Partition
from ottla.broker.replica_manager.partitions import Partitions
from ottla.broker.replica_manager.replica_roles import Lead, ReplicaRoles, RoleListener
from ottla.broker.settings.config import BrokerConfig
from ottla.clock import Clock
from ottla.coordination.cluster.hosted_copies import compare_hosted_partitions, list_hosted_partitions
from ottla.coordination.cluster.topic import ClusterTopic, PartitionState
from ottla.coordination.replication.assignment import LiveBrokers
from ottla.coordination.replication.fetch_session import ReplicaPlace
from ottla.errors import KafkaError
from ottla.model import TopicPartition

if TYPE_CHECKING:
    from ottla.broker.replica_manager.replica_fetcher import LeaderFetcher

log = logging.getLogger(__name__)


class AssignmentListener(RoleListener, Protocol):
    """The coordinators, for which deleted topics matter too."""

    def topics_deleted(self, names: Collection[str]) -> None:
        """Handle that topics were deleted. KafkaError if that cannot be stored."""


class AssignedReplicas:
    """The replicas that the metadata assigns to this broker. Called in the loop, like the fetchers that it creates."""

    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        metadata: ObservedMetadata,
        partitions: Partitions,
        lead: Lead,
        fetcher: Callable[[int], LeaderFetcher],
        isr_changes: IsrChanges,
        directories: DirectoryAssignments,
        listener: AssignmentListener,
        waiting: FetchPurgatory,
        flusher: LogFlusher,
        timers: Timers,
        clock: Clock,
    ) -> None:
        """`fetcher` creates the fetcher for a leader."""
        self._config = config
        self._metadata = metadata
        self._partitions = partitions
        self._directories = directories
        self._waiting = waiting
        self._timers = timers
        self._clock = clock
        self._me = config().node_id
        self._listener = listener
        self._has_started = False
        self._topics: dict[UUID, ClusterTopic] = {}
        """The topics with replicas on this broker, in the state that was applied last."""
        self._roles = ReplicaRoles(config, lead, fetcher, isr_changes, listener, self, waiting, flusher, timers, clock)
        self._suspected: set[UUID] = set()
        """Topics in which reads have found damage."""

    def start(self) -> None:
        """Apply the metadata for the first time, once this broker has caught up with it."""
        if self._has_started:
            return
        self._has_started = True
        is_known = lambda topic_id: self._metadata.machine.find_topic_by_id(topic_id) is not None  # noqa: E731
        self._partitions.finish_deletions(is_known, self._metadata.removed_topics)
        self.apply_metadata()
        self._roles.assign_all()
        for folder in self._partitions.list_unknown_folders():
            log.warning(
                "%s belongs to no partition of this broker, and is kept: delete it if it is not needed",
                folder,
            )
        self._watch_followers()

    def apply_metadata(self) -> None:
        """Apply the changes of the metadata since the last call."""
        if not self._has_started:
            return
        self._apply_live_brokers()
        now = {topic.topic_id: topic for topic in self._metadata.machine.topics.values()}
        gone = [self._topics.pop(topic_id) for topic_id in list(self._topics) if topic_id not in now]
        for topic in gone:
            self._change(topic, None)
        for topic_id, topic in now.items():
            before = self._topics.get(topic_id)
            if before is not topic:
                self._change(before, topic)
                self._topics[topic_id] = topic
        self._roles.assign_next()
        self._directories.report()
        if gone:
            self._report_deleted([topic.name for topic in gone])

    def _report_deleted(self, names: list[str]) -> None:
        try:
            self._listener.topics_deleted(names)
        except KafkaError as error:
            log.error("cannot delete the committed offsets of %s: %s", ", ".join(names), error)

    def close(self) -> None:
        self._roles.close()

    def _apply_live_brokers(self) -> None:
        known = self._metadata.machine.registrations
        alive = {id_: each.epoch for id_, each in known.items() if not (each.fenced or each.in_controlled_shutdown)}
        if alive != self._roles.brokers.epochs:
            self._roles.update_brokers(LiveBrokers(alive), self._partitions)

    def _change(self, before: ClusterTopic | None, after: ClusterTopic | None) -> None:
        topic = after or before
        assert topic is not None
        taken, given_up = compare_hosted_partitions(before, after, self._me)
        if given_up:
            self._remove_replicas(topic, given_up)
        if after is not None and taken:
            self._add_replicas(after, taken)
        if not list_hosted_partitions(after, self._me):
            self._partitions.remove_topic(topic)

    def _remove_replicas(self, topic: ClusterTopic, indices: list[int]) -> None:
        for index in indices:
            self._roles.remove(ReplicaPlace(topic.topic_id, index))
            log.info("%s-%d is no longer assigned to this broker: its files are deleted", topic.name, index)
        for partition in self._partitions.remove_partitions(topic, indices):
            leadership, partition.leadership = partition.leadership, None
            partition.leads = False
            if leadership is not None:
                leadership.end()
            self._listener.lost(partition)
            self._waiting.recheck([partition])

    def _add_replicas(self, topic: ClusterTopic, states: list[PartitionState]) -> None:
        new = {each.index for each in states if self._partitions.find(topic.name, each.index) is None}
        for index in new:
            self._partitions.set_aside(TopicPartition(topic.name, index), topic.topic_id)
        self._partitions.add(topic, states)
        for state in states:
            partition = self._partitions.find(topic.name, state.index)
            assert partition is not None
            partition.leads = partition.leads and state.index not in new
            self._directories.record_assignment(topic, state)
            self._roles.assign(partition, topic, state)

    def stop(self, partitions: Iterable[Partition]) -> None:
        """Stop leading and following partitions of a failed directory."""
        for each in partitions:
            self._roles.remove(ReplicaPlace(each.topic_id, each.topic_partition.partition))

    def report_directory(self, partition: TopicPartition) -> None:
        """Report the directory of a replica, or its future one, to the controllers."""
        topic = self._metadata.machine.topics.get(partition.topic)
        if topic is not None and partition.partition < len(topic.partitions):
            state = topic.partitions[partition.partition]
            if self._me in state.replicas:
                self._directories.record_assignment(topic, state)
                self._directories.report()

    def relocate(self, partition: Partition) -> None:
        """Continue to replicate into the partition's new log, in another directory."""
        self._roles.relocate(partition)

    def is_served_elsewhere(self, partition: Partition) -> bool:
        """Return True if a client that met damage should retry: another broker leads, or is about to."""
        topic_id = partition.topic_id
        if not self._roles.is_waiting_for_leader(partition):
            return False
        if topic_id not in self._suspected:
            self._suspected.add(topic_id)
            self._timers.schedule(self._clock.monotonic(), lambda: self._report_damage(topic_id))
        return True

    def _report_damage(self, topic_id: UUID) -> None:
        self._suspected.discard(topic_id)
        self.apply_again(topic_id)

    def apply_again(self, topic_id: UUID) -> None:
        """Apply a topic's metadata again after a failure, as its disk may work again."""
        self._topics.pop(topic_id, None)
        self.apply_metadata()

    def leave_isr(self, topic: ClusterTopic, state: PartitionState) -> None:
        """Request that a damaged replica leaves the ISR, since others are intact."""
        self._directories.remove_topic(topic, state)

    def _watch_followers(self) -> None:
        repeat(
            self._timers,
            self._clock,
            "replica.lag.time.max.ms",
            lambda: self._roles.watch(self._partitions),
            lambda: self._config().replica_lag_time_max_ms / 2000,
            first_seconds=0,
        )
