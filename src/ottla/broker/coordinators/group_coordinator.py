"""The group coordinator: consumer groups and their committed offsets, stored in `__consumer_offsets`.

`CoordinatorRuntime` loads and retires the shards; `coordination.groups.shard.Shard` decides. This class creates their events and keeps
every shard informed of the topics and of the configs of groups. Apache Kafka's counterpart is GroupCoordinatorService.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ottla.broker.coordinators.commitment import find_uncommitted
from ottla.broker.coordinators.coordinator_runtime import CoordinatorContext, CoordinatorListener, CoordinatorRuntime
from ottla.broker.coordinators.share_group_states import ShareGroupStates
from ottla.broker.metadata.internal_topics import CONSUMER_OFFSETS
from ottla.broker.replica_manager.leadership import Leadership
from ottla.broker.replica_manager.partition import Partition
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.state_machines.runtime import Coding, PendingReply, Runtime, Transactional
from ottla.coordination.groups.classic.group import ClassicGroup
from ottla.coordination.groups.config import GroupConfig, ShareGroupConfig, StreamsGroupConfig
from ottla.coordination.groups.consumer.events import GroupConfigsChanged, TopicsChanged
from ottla.coordination.groups.consumer.group import ConsumerGroup
from ottla.coordination.groups.events import ExpiryDue, Loaded, TimerExpired, TopicsDeleted
from ottla.coordination.groups.records import decode_record, encode_record, producer_of, within_transaction
from ottla.coordination.groups.shard import Shard
from ottla.coordination.groups.share.group import ShareGroup
from ottla.coordination.groups.streams.group import StreamsGroup
from ottla.coordination.offsets.pending import TransactionEnded
from ottla.errors import ErrorCode, KafkaError
from ottla.escaping import escape_controls
from ottla.model import OffsetAndMetadata, TopicPartition
from ottla.storage.batches.damage import OutOfServiceError

if TYPE_CHECKING:
    from ottla.broker.coordinators.share_persister import SharePersister

log = logging.getLogger(__name__)
Group = ClassicGroup | ConsumerGroup | ShareGroup | StreamsGroup

FIRST_EPOCH = 1
"""The epoch of a new consumer group before its first subscription, as in Kafka: with the subscription the group is in epoch 2."""

CODING = Coding(encode_record, decode_record, Transactional(producer_of, within_transaction, TransactionEnded))


class CommittedOffsets:
    """The committed offsets of one group, for one request: the shard is looked up once, not for each partition."""

    def __init__(self, shard: Shard, group: str) -> None:
        self._shard = shard
        self._group = group

    def all(self) -> Mapping[TopicPartition, OffsetAndMetadata]:
        return self._shard.offsets.fetch(self._group, None)

    def offset(self, partition: TopicPartition) -> OffsetAndMetadata | None:
        return self._shard.offsets.fetch(self._group, (partition,)).get(partition)

    def is_unstable(self, partition: TopicPartition) -> bool:
        """Return True if an open transaction may change the offset."""
        return bool(self._shard.pending) and self._shard.pending.holds(self._group, partition)


class GroupCoordinator(CoordinatorListener[Shard]):
    """The groups that this broker coordinates."""

    def __init__(
        self,
        config: BrokerConfig,
        context: CoordinatorContext,
        share_persister: Callable[[], SharePersister],
        listeners: Sequence[Callable[[Any], None]] = (),
    ) -> None:
        """`share_persister` sends operations on the states of share groups; it is called at the first one.

        `listeners` are called with each note of a group; a note has a text.
        """
        self._topics = context.topics
        self._clock = context.clock
        self._group_config = group_config_of(config)
        self._runtime = CoordinatorRuntime(CONSUMER_OFFSETS, lambda: Shard(self._group_config), CODING, self, context)
        context.topics.on_configured(self._configure)
        self.share_states = ShareGroupStates(
            share_persister, context.topics, lambda group, event: self.submit(group, event, make=False)
        )
        """The states of the share groups that this broker coordinates."""
        self._listeners = listeners

    def submit(
        self, group: str, event: Callable[[int], Any], later: Callable[[Any], None] | None = None, *, make: bool = True
    ) -> Any:
        """Decide an event on the shard of a group, and return its reply as `Runtime.submit` does.

        Raise KafkaError if the shard cannot be used. If `__consumer_offsets` does not exist it is created; without `make`,
        KafkaError(GROUP_ID_NOT_FOUND) is raised instead.
        """
        if make:
            self._runtime.ensure_topic()
        runtime = self._runtime.find(group)
        if runtime is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group!r}")
        self._update_metadata(runtime)
        return runtime.submit(event, later)

    def submit_share_heartbeat(
        self, group: str, event: Callable[[int], Any], later: Callable[[Any], None] | None = None
    ) -> Any:
        """Decide the heartbeat of a member of a share group like `submit`, and create the states that the group waits for."""

        def then(reply: Any) -> None:
            if later is not None:
                later(reply)
            self._initialize_states(group)

        reply = self.submit(group, event, None if later is None else then)
        if not isinstance(reply, PendingReply):
            self._initialize_states(group)
        return reply

    def find_shard(self, group: str) -> Shard | None:
        """Return the shard of a group with the present metadata; None if `__consumer_offsets` does not exist.

        Raise KafkaError if it cannot be used.
        """
        runtime = self._runtime.find(group)
        if runtime is None:
            return None
        self._update_metadata(runtime)
        return runtime.machine

    def find(self, group: str) -> Group | None:
        """Return the group, or None if it does not exist. Raise KafkaError if its shard cannot be used."""
        runtime = self._runtime.find(group)
        return None if runtime is None else find_group(runtime.machine, group)

    def find_fault(self, group: str) -> OutOfServiceError | None:
        """Return the damage that keeps a group out of service until an operator repairs it."""
        return self._runtime.find_fault(group)

    def all(self) -> Iterator[Group]:
        """Yield every group except those out of service. Raise KafkaError if a shard is being loaded."""
        for shard in self._runtime.stored_shards():
            yield from shard.all()
            yield from shard.shares.groups.values()

    def loaded_groups(self) -> Iterator[tuple[Group, Callable[[Hashable], float | None]]]:
        """Yield the groups in memory that have or had members, each with a function from a timer's name to its deadline."""
        for _, runtime in self._runtime.all_active():
            machine, due = runtime.machine, runtime.find_deadline
            yield from ((group, due) for group in machine.groups.values())
            yield from ((group, due) for group in machine.consumers.groups.values())
            yield from ((group, due) for group in machine.shares.groups.values())
            yield from ((group, due) for group in machine.streams.groups.values())

    def committed_offsets(self) -> Iterator[tuple[str, TopicPartition, int]]:
        """Yield the group, partition and offset of each committed offset of the groups that this broker coordinates."""
        for _, runtime in self._runtime.all_active():
            for group, committed in runtime.machine.offsets.groups.items():
                yield from ((group, partition, value.offset) for partition, value in committed.items())

    @property
    def loaded_count(self) -> int:
        shards = [runtime.machine for _, runtime in self._runtime.all_active()]
        kinds = [kind.groups for shard in shards for kind in (shard, shard.consumers, shard.shares, shard.streams)]
        return sum(map(len, kinds))

    def find_loaded(self, group: str) -> Group | None:
        """Return a group if its shard is in memory."""
        shards = (runtime.machine for _, runtime in self._runtime.all_active())
        return next((found for shard in shards if (found := find_group(shard, group))), None)

    def find_offsets(self, group: str) -> CommittedOffsets | None:
        """Return the committed offsets of a group; None if `__consumer_offsets` does not exist."""
        runtime = self._runtime.find(group)
        return None if runtime is None else CommittedOffsets(runtime.machine, group)

    def fetch_error(self, group: str, member_id: str | None, epoch: int) -> int:
        """Return the error for an OffsetFetch that names a member and its epoch (KIP-848)."""
        runtime = self._runtime.find(group)
        return ErrorCode.NONE if runtime is None else runtime.machine.fetch_error(group, member_id, epoch)

    def find_uncommitted(self, group: str) -> tuple[Leadership, int] | None:
        """Return the end offset that must be committed before a response about the group may be sent; None if it is."""
        partition = self._runtime.find_partition(group)
        return None if partition is None else find_uncommitted(partition)

    def apply_transaction_end(self, partition: Partition, producer_id: int, *, commit: bool) -> None:
        """Apply an end marker that was appended to a partition: its pending offsets are committed or dropped."""
        self._runtime.replay_transaction_end(partition, producer_id, commit=commit)

    def topics_deleted(self, names: Collection[str]) -> None:
        """Delete the committed offsets of deleted topics, and every shard if `__consumer_offsets` is one of them."""
        if CONSUMER_OFFSETS in names:
            self._runtime.retire_all()
        self._runtime.write_all(lambda ticket: TopicsDeleted(ticket, names))
        self._runtime.write_when_loaded(lambda ticket: TopicsDeleted(ticket, names))
        for partition, runtime in self._runtime.all_active():
            try:
                self.share_states.drop_deleted_topics(runtime)
            except KafkaError as error:
                log.error("deleting topics of share groups failed partition=%s error=%s", partition, error)

    def expire_offsets(self) -> None:
        """Delete expired offsets, and groups that have no members and no offsets left."""
        for partition, count in self._runtime.write_all(lambda ticket: ExpiryDue(ticket, self._clock.wall_ms())):
            if count:
                log.info("expired offsets partition=%s count=%d", partition.topic_partition, count)

    def is_loading(self, partition: Partition) -> bool:
        return self._runtime.is_loading(partition)

    def relocate(self, partition: Partition) -> None:
        """Use the log that the partition has now, in another directory."""
        self._runtime.relocate(partition)

    def retire(self, partition: Partition) -> None:
        """Drop the groups of a partition that another broker leads now."""
        self._runtime.retire(partition)

    def on_loaded(self, partition: Partition, runtime: Runtime[Shard]) -> None:
        self.on_rebuilt(runtime)

    def on_rebuilt(self, runtime: Runtime[Shard]) -> None:
        self._update_metadata(runtime)
        runtime.submit(lambda ticket: Loaded(ticket, self._clock.wall_ms()))
        self.share_states.resume(runtime)

    def on_timer(self, runtime: Runtime[Shard], name: Any) -> None:
        self._update_metadata(runtime)
        runtime.submit(lambda ticket: TimerExpired(ticket, name, self._clock.wall_ms()))

    def on_note(self, note: Any) -> None:
        if log.isEnabledFor(logging.INFO):
            log.info("%s", escape_controls(note))
        for listener in self._listeners:
            listener(note)

    def _configure(self, config: BrokerConfig) -> None:
        """Apply the settings of streams groups that can change at run time."""
        self._group_config = group_config_of(config)
        for _, runtime in self._runtime.all_active():
            runtime.machine.streams.config = self._group_config.streams

    def _initialize_states(self, group: str) -> None:
        try:
            runtime = self._runtime.find(group)
        except KafkaError:
            return  # another broker coordinates the group now
        if runtime is not None:
            self.share_states.initialize_waiting(runtime.machine, [group])

    def _update_metadata(self, runtime: Runtime[Shard]) -> None:
        """Pass the present topics and the configs of groups to a shard that has older ones."""
        consumers = runtime.machine.consumers
        image = self._topics.image()
        if consumers.image is not image:
            runtime.submit(lambda ticket: TopicsChanged(ticket, image))
        settings = self._topics.group_settings()
        if consumers.settings is not settings:
            runtime.submit(lambda ticket: GroupConfigsChanged(ticket, settings))


def find_group(shard: Shard, group: str) -> Group | None:
    """Return a group of any kind."""
    return shard.shares.groups.get(group) or shard.find(group)


def group_config_of(config: BrokerConfig) -> GroupConfig:
    """Return the settings of a broker that concern groups."""
    return GroupConfig(
        consumer_first_epoch=FIRST_EPOCH,
        initial_rebalance_delay=config.group_initial_rebalance_delay_ms / 1000,
        min_session_timeout_ms=config.group_min_session_timeout_ms,
        max_session_timeout_ms=config.group_max_session_timeout_ms,
        max_size=config.group_max_size,
        offsets_retention_ms=config.offsets_retention_minutes * 60_000,
        consumer_session_timeout_ms=config.group_consumer_session_timeout_ms,
        consumer_heartbeat_interval_ms=config.group_consumer_heartbeat_interval_ms,
        consumer_max_size=config.group_consumer_max_size,
        consumer_assignors=config.consumer_assignors,
        consumer_migration_policy=config.group_consumer_migration_policy,
        share=ShareGroupConfig(
            session_timeout_ms=config.group_share_session_timeout_ms,
            heartbeat_interval_ms=config.group_share_heartbeat_interval_ms,
            max_size=config.group_share_max_size,
        ),
        streams=StreamsGroupConfig(
            session_timeout_ms=config.group_streams_session_timeout_ms,
            heartbeat_interval_ms=config.group_streams_heartbeat_interval_ms,
            max_size=config.group_streams_max_size,
            num_standby_replicas=config.group_streams_num_standby_replicas,
            initial_rebalance_delay_ms=config.group_streams_initial_rebalance_delay_ms,
            assignment_interval_ms=config.group_streams_assignment_interval_ms,
            rack_aware_assignment_tags=config.streams_tags,
            stores_descriptions=bool(config.group_streams_topology_description_plugin_class),
        ),
    )
