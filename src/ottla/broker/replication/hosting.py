"""What the metadata say of this broker's copies, done: opened, led, followed, given up.

    metadata ──► what is another ──► led here: lead ──► in-sync set wanted ──► controllers
                                 ──► led elsewhere: follow ──► one fetcher for each leader
                                 ──► not here any more: its files go

Nothing is done before the broker has caught up with the metadata: on the way there a partition may be another's that is this
broker's in the end, and whoever acted on that would delete its log. For the same reason a folder that belongs to no partition is
left at a start, and named.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from uuid import UUID

from ottla.broker.fetching.waiting import Waiting
from ottla.broker.machines.observed_metadata import ObservedMetadata
from ottla.broker.partitions.flusher import Flusher
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.replication.directories import Directories
from ottla.broker.replication.isr_changes import IsrChanges
from ottla.broker.replication.leader_fetcher import LeaderFetcher
from ottla.broker.replication.replica_roles import Lead, ReplicaRoles
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.timers import Timers, repeat
from ottla.clock import Clock
from ottla.coordination.cluster.hosted_copies import changes, copies_of
from ottla.coordination.cluster.topic import PartitionState, Topic
from ottla.coordination.replication.assignment import LiveBrokers
from ottla.coordination.replication.fetch_session import Place
from ottla.errors import KafkaError
from ottla.model import TopicPartition

log = logging.getLogger(__name__)


class Hosting:
    """Called in the loop alone, as are the fetchers that it makes."""

    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        metadata: ObservedMetadata,
        partitions: Partitions,
        lead: Lead,
        fetcher: Callable[[int], LeaderFetcher],
        isr_changes: IsrChanges,
        directories: Directories,
        waiting: Waiting,
        flusher: Flusher,
        timers: Timers,
        clock: Clock,
    ) -> None:
        """`fetcher` makes one for a leader."""
        self._config = config
        self._metadata = metadata
        self._partitions = partitions
        self._directories = directories
        self._waiting = waiting
        self._timers = timers
        self._clock = clock
        self._me = config().node_id
        self.on_led: Callable[[Partition], None] = lambda partition: None
        """Told of partitions that this broker leads, whenever the metadata say something new of them."""
        self.on_lost: Callable[[Partition], None] = lambda partition: None
        """Told of partitions that another broker leads now, or nobody."""
        self.on_deleted: Callable[[Collection[str]], None] = lambda names: None
        """Told of topics that are no more."""
        self._begun = False
        self._topics: dict[UUID, Topic] = {}
        """Those of which something is here, as they were when they were last looked at."""
        self._roles = ReplicaRoles(config, lead, fetcher, isr_changes, waiting, flusher, timers, clock)
        self._roles.on_led = lambda partition: self.on_led(partition)
        self._roles.on_lost = lambda partition: self.on_lost(partition)
        self._roles.on_failure = self._look_again
        self._roles.on_damaged = self._directories.give_up
        self._suspected: set[UUID] = set()
        """Topics of which damage was found while they were read."""

    def begin(self) -> None:
        """Take up what is here, now that the metadata are known."""
        if self._begun:
            return
        self._begun = True
        self.look()
        self._roles.finish()
        for folder in self._partitions.strays():
            log.warning(
                "%s belongs to no partition of this broker: it is left as it is, move it away if you do not need it",
                folder,
            )
        self._watch_followers()

    def look(self) -> None:
        """Do what the metadata say now."""
        if not self._begun:
            return
        self._look_at_brokers()
        now = {topic.topic_id: topic for topic in self._metadata.machine.topics.values()}
        gone = [self._topics.pop(topic_id) for topic_id in list(self._topics) if topic_id not in now]
        for topic in gone:
            self._change(topic, None)
        for topic_id, topic in now.items():
            before = self._topics.get(topic_id)
            if before is not topic:
                self._change(before, topic)
                self._topics[topic_id] = topic
        self._roles.go_on()
        self._directories.tell()
        if gone:
            self._tell_deleted([topic.name for topic in gone])

    def _tell_deleted(self, names: list[str]) -> None:
        try:
            self.on_deleted(names)
        except KafkaError as error:
            log.error("what groups committed for %s is still there: %s", ", ".join(names), error)

    def close(self) -> None:
        self._roles.close()

    def _look_at_brokers(self) -> None:
        known = self._metadata.machine.registrations
        alive = {id_: each.epoch for id_, each in known.items() if not (each.fenced or each.in_controlled_shutdown)}
        if alive != self._roles.brokers.epochs:
            self._roles.see(LiveBrokers(alive), self._partitions)

    def _change(self, before: Topic | None, after: Topic | None) -> None:
        topic = after or before
        assert topic is not None
        taken, given_up = changes(before, after, self._me)
        if given_up:
            self._give_up(topic, given_up)
        if after is not None and taken:
            self._take(after, taken)
        if not copies_of(after, self._me):
            self._partitions.forget(topic)

    def _give_up(self, topic: Topic, indices: list[int]) -> None:
        for index in indices:
            self._roles.give_up(Place(topic.topic_id, index))
            log.info("%s-%d is not this broker's any more: its files go", topic.name, index)
        for partition in self._partitions.give_up(topic, indices):
            leadership, partition.leadership = partition.leadership, None
            partition.leads = False
            if leadership is not None:
                leadership.end()
            self.on_lost(partition)
            self._waiting.look_again([partition])

    def _take(self, topic: Topic, states: list[PartitionState]) -> None:
        new = {each.index for each in states if self._partitions.find(topic.name, each.index) is None}
        for index in new:
            self._partitions.make_way(TopicPartition(topic.name, index), topic.topic_id)
        self._partitions.add(topic, states)
        for state in states:
            partition = self._partitions.find(topic.name, state.index)
            assert partition is not None
            partition.leads = partition.leads and state.index not in new
            self._directories.note(topic, state)
            self._roles.assign(partition, topic, state)

    def lose(self, partitions: Iterable[Partition]) -> None:
        """Neither lead nor follow these any more: their directory has failed."""
        for each in partitions:
            self._roles.give_up(Place(each.topic_id, each.topic_partition.partition))

    def tell_place(self, partition: TopicPartition) -> None:
        """Tell the controllers where a copy is, or is about to be."""
        topic = self._metadata.machine.topics.get(partition.topic)
        if topic is not None and partition.partition < len(topic.partitions):
            state = topic.partitions[partition.partition]
            if self._me in state.replicas:
                self._directories.note(topic, state)
                self._directories.tell()

    def relocate(self, partition: Partition) -> None:
        """Copy on into the log that a partition has now, in another directory."""
        self._roles.relocate(partition)

    def relieves(self, partition: Partition) -> bool:
        """Whether who has met damage in a copy had better ask again: another leads, or is asked to."""
        topic_id = partition.topic_id
        if not self._roles.awaits_relief(partition):
            return False
        if topic_id not in self._suspected:
            self._suspected.add(topic_id)
            self._timers.at(self._clock.monotonic(), lambda: self._see_to_damage(topic_id))
        return True

    def _see_to_damage(self, topic_id: UUID) -> None:
        self._suspected.discard(topic_id)
        self._look_again(topic_id)

    def _look_again(self, topic_id: UUID) -> None:
        """Take up a topic once more, of which something could not be used: a disk may be well again."""
        self._topics.pop(topic_id, None)
        self.look()

    def _watch_followers(self) -> None:
        repeat(
            self._timers,
            self._clock,
            "replica.lag.time.max.ms",
            lambda: self._roles.watch(self._partitions),
            lambda: self._config().replica_lag_time_max_ms / 2000,
            first_seconds=0,
        )
