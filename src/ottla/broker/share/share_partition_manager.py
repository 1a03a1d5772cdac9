"""The share partitions that a broker leads, and the share sessions of members (KIP-932).

A share partition is loaded by the first request for it, and ends with the leadership or with the topic. Apache Kafka's
counterparts are SharePartitionManager and SharePartitionCache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from ottla.broker.metadata.topics import Topics
from ottla.broker.replica_manager.partition import Partition
from ottla.broker.replica_manager.partitions import Partitions
from ottla.broker.share.led_share_partition import LedSharePartition, ShareLeaderContext
from ottla.broker.share.share_counts import ShareCounts, SharePartitionView
from ottla.broker.share.share_sessions import SharedPartition, ShareSessions
from ottla.coordination.share.share_state import SharePartitionKey
from ottla.errors import ErrorCode


class SharePartitionManager:
    """The share partitions of this broker. Belongs to the event loop."""

    def __init__(
        self, topics: Topics, partitions: Partitions, context: ShareLeaderContext, session_limit: Callable[[], int]
    ) -> None:
        self._topics = topics
        self._partitions = partitions
        self.context = context
        self.sessions = ShareSessions(session_limit)
        self._led: dict[SharePartitionKey, LedSharePartition] = {}
        self._by_partition: dict[Partition, dict[LedSharePartition, None]] = {}

    def __len__(self) -> int:
        return len(self._led)

    @property
    def counts(self) -> ShareCounts:
        return self.context.counts

    def describe(self) -> list[SharePartitionView]:
        """Return the state of each partition that a group reads here and whose log can be read."""
        return [each.describe() for each in self._led.values() if each.is_ready and each.partition.fault is None]

    def expire_locks(self, group_id: str) -> int:
        """Release the records that members of a group have acquired, and return their number."""
        loaded = [each for key, each in self._led.items() if key.group_id == group_id and each.is_ready]
        return sum(each.expire_all_locks() for each in loaded)

    def find(self, group_id: str, place: SharedPartition) -> LedSharePartition | int:
        """Return a partition as a group reads it, loaded or being loaded; or the error code if this broker does not lead it."""
        topic = self._topics.with_id(place.topic_id)
        if topic is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        partition = self._partitions.find(topic.name, place.partition)
        if partition is None:
            return self._topics.absent_code(topic.name, place.partition)
        if not partition.leads:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        key = SharePartitionKey(group_id, *place)
        found = self._led.get(key)
        if found is not None and found.partition is not partition:
            found.end(ErrorCode.NOT_LEADER_OR_FOLLOWER)  # the topic was deleted and created again
            found = None
        if found is None:
            found = LedSharePartition(key, partition, self.context, self._forget)
            self._led[key] = found
            self._by_partition.setdefault(partition, {})[found] = None
            found.start()
        return found

    def find_loaded(self, group_id: str, place: SharedPartition) -> LedSharePartition | None:
        """Return a partition as a group reads it if its state was read."""
        found = self._led.get(SharePartitionKey(group_id, *place))
        return found if found is not None and found.is_ready else None

    def close_connection(self, connection: object) -> None:
        """Close the sessions of a connection, and release the records of their members."""
        for session in self.sessions.close_connection(connection):
            self.release(session.group_id, session.member_id, session.partitions, lambda place, code: None)

    def release(
        self,
        group_id: str,
        member_id: str,
        places: Iterable[SharedPartition],
        on_code: Callable[[SharedPartition, int], None],
    ) -> None:
        """Release the records that a member has acquired in some partitions, because its session was closed.

        After the last session of a group its share partitions end, because its offsets may be altered then.
        """
        left = set(places)

        def complete(place: SharedPartition, code: int) -> None:
            left.discard(place)
            on_code(place, code)
            if not left:
                self._end_idle_group(group_id)

        if not left:
            self._end_idle_group(group_id)
        for place in list(left):
            found = self.find_loaded(group_id, place)
            if found is None:
                complete(place, ErrorCode.NONE)
            else:
                found.release_member(member_id, partial(complete, place))

    def retire(self, partition: Partition) -> None:
        """End the share partitions of a partition that another broker leads now."""
        for each in list(self._by_partition.get(partition, ())):
            each.end(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def drop_deleted_topics(self) -> None:
        """End the share partitions of topics that are not in the metadata any more."""
        for key, each in list(self._led.items()):
            if self._topics.with_id(key.topic_id) is None:
                each.end(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def handle_new_metadata(self) -> None:
        """Continue the copies to dead letter queues that waited for a topic."""
        self.context.dead_letters.handle_new_metadata()

    def close(self) -> None:
        """Stop the copies to dead letter queues."""
        self.context.dead_letters.close()

    def _end_idle_group(self, group_id: str) -> None:
        if not self.sessions.has_group(group_id):
            for each in [each for key, each in self._led.items() if key.group_id == group_id]:
                each.end(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _forget(self, ended: LedSharePartition) -> None:
        if self._led.get(ended.key) is ended:
            del self._led[ended.key]
        same = self._by_partition.get(ended.partition)
        if same is not None:
            same.pop(ended, None)
            if not same:
                del self._by_partition[ended.partition]
