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
from collections.abc import Callable, Collection
from uuid import UUID

from ottla.broker.fetching.waiting import Waiting
from ottla.broker.machines.observed_metadata import ObservedMetadata
from ottla.broker.partitions.flusher import Flusher
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.replication.directories import Directories
from ottla.broker.replication.followed_partition import FollowedPartition, begin_to_follow
from ottla.broker.replication.isr_changes import IsrChanges
from ottla.broker.replication.leader_fetcher import LeaderFetcher
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.timers import Timers
from ottla.clock import Clock
from ottla.coordination.cluster.hosted_copies import changes, copies_of
from ottla.coordination.cluster.topic import PartitionState, Topic
from ottla.coordination.replication.assignment import Assignment, LiveBrokers
from ottla.coordination.replication.fetch_session import Place
from ottla.errors import KafkaError
from ottla.model import TopicPartition

log = logging.getLogger(__name__)
AGAIN_SECONDS = 5.0
Lead = Callable[[Partition, Assignment, LiveBrokers], None]


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
        self._lead = lead
        self._fetcher = fetcher
        self._isr_changes = isr_changes
        self._directories = directories
        self._waiting = waiting
        self._flusher = flusher
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
        self._fetchers: dict[int, LeaderFetcher] = {}
        self._followed: dict[Place, FollowedPartition] = {}
        self._brokers = LiveBrokers()

    def begin(self) -> None:
        """Take up what is here, now that the metadata are known."""
        if self._begun:
            return
        self._begun = True
        self.look()
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
        self._directories.tell()
        if gone:
            self._tell_deleted([topic.name for topic in gone])

    def _tell_deleted(self, names: list[str]) -> None:
        try:
            self.on_deleted(names)
        except KafkaError as error:
            log.error("what groups committed for %s is still there: %s", ", ".join(names), error)

    def close(self) -> None:
        for fetcher in self._fetchers.values():
            fetcher.close()
        self._fetchers.clear()

    def _look_at_brokers(self) -> None:
        known = self._metadata.machine.registrations
        alive = {id_: each.epoch for id_, each in known.items() if not (each.fenced or each.in_controlled_shutdown)}
        if alive == self._brokers.epochs:
            return
        self._brokers = LiveBrokers(alive)
        for partition in self._partitions:
            if partition.leadership is not None:
                partition.leadership.brokers = self._brokers
                partition.leadership.advance(self._clock.monotonic())
                self._isr_changes.look(partition.leadership)

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
            self._stop_following(Place(topic.topic_id, index))
            log.info("%s-%d is not this broker's any more: its files go", topic.name, index)
        for partition in self._partitions.give_up(topic, indices):
            leadership, partition.leadership = partition.leadership, None
            partition.leads = False
            if leadership is not None:
                leadership.end()
            self.on_lost(partition)
            self._waiting.look_again([partition])

    def _take(self, topic: Topic, states: list[PartitionState]) -> None:
        for state in states:
            if self._partitions.find(topic.name, state.index) is None:
                self._partitions.make_way(TopicPartition(topic.name, state.index), topic.topic_id)
        self._partitions.add(topic, states)
        for state in states:
            partition = self._partitions.find(topic.name, state.index)
            assert partition is not None
            self._directories.note(topic, state)
            try:
                self._play(partition, topic, state)
            except KafkaError as error:
                log.error("%s cannot be used: %s", partition.topic_partition, error)
                if partition.fault is None:
                    self._timers.at(self._clock.monotonic() + AGAIN_SECONDS, lambda: self._look_again(topic.topic_id))

    def _look_again(self, topic_id: UUID) -> None:
        """Take up a topic once more, of which something could not be used: a disk may be well again."""
        self._topics.pop(topic_id, None)
        self.look()

    def _play(self, partition: Partition, topic: Topic, state: PartitionState) -> None:
        """Lead or follow, as the metadata say; without a leader wait until there is one."""
        place = Place(topic.topic_id, state.index)
        if state.leader == self._me:
            self._stop_following(place)
            self._begin_to_lead(partition, self._assignment(topic, state))
            return
        known = self._followed.get(place)
        if known is not None and (known.leader, known.machine.leader_epoch) == (state.leader, state.leader_epoch):
            return
        self._stop_following(place)
        led = partition.leads
        begin_to_follow(partition, state.leader_epoch, self._waiting, self._clock)
        if led:
            self.on_lost(partition)
        if state.leader >= 0:
            self._follow(partition, state.leader)

    def _begin_to_lead(self, partition: Partition, assignment: Assignment) -> None:
        self._lead(partition, assignment, self._brokers)
        if partition.leadership is not None:
            partition.leadership.on_change = self._isr_changes.look
            self._isr_changes.look(partition.leadership)
        self.on_led(partition)

    def _follow(self, partition: Partition, leader: int) -> None:
        followed = FollowedPartition(partition, leader, self._clock, self._flusher, self._waiting)
        self._followed[followed.place] = followed
        if leader not in self._fetchers:
            self._fetchers[leader] = self._fetcher(leader)
        self._fetchers[leader].add(followed)

    def _stop_following(self, place: Place) -> None:
        followed = self._followed.pop(place, None)
        if followed is not None:
            self._fetchers[followed.leader].remove(place)

    def _assignment(self, topic: Topic, state: PartitionState) -> Assignment:
        in_sync = int(topic.configs.get("min.insync.replicas", self._config().min_insync_replicas))
        return Assignment(
            state.leader, state.leader_epoch, state.partition_epoch, state.replicas, frozenset(state.isr), in_sync
        )

    def _watch_followers(self) -> None:
        """Notice who lags though it does not fetch."""
        for partition in self._partitions:
            if partition.leadership is not None:
                partition.leadership.advance(self._clock.monotonic())
                self._isr_changes.look(partition.leadership)
        span = self._config().replica_lag_time_max_ms / 2000
        self._timers.at(self._clock.monotonic() + span, self._watch_followers)
