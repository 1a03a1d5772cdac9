"""Consumer groups and their offsets, kept in `__consumer_offsets`: a machine for each of its partitions.

A group belongs to the partition that its name's hash, Java's, says. A machine is built from its log when a group of
its partition is first asked for; a long log is read beside the loop, and clients are told to come again meanwhile.

In a cluster the groups of a partition are with its leader. Who comes to lead it builds the machine from its copy of the log when it
is first asked, and who leads no more forgets it: those who wait are told NOT_COORDINATOR, and find the other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ottla.broker.cluster.own_topics import CONSUMER_OFFSETS
from ottla.broker.cluster.topics import partition_of_key
from ottla.broker.coordinators.commitment import ensure_may_append, uncommitted
from ottla.broker.coordinators.faults import StillLoading, fault_in, not_here
from ottla.broker.coordinators.surroundings import Surroundings
from ottla.broker.disk import Disk
from ottla.broker.machines.alarms import Alarms
from ottla.broker.machines.runtime import Coding, Hooks, Runtime, Transactional
from ottla.broker.partitions.leadership import Leadership
from ottla.broker.partitions.partition import Partition
from ottla.broker.settings.config import BrokerConfig
from ottla.coordination.groups.classic.group import ClassicGroup
from ottla.coordination.groups.config import GroupConfig
from ottla.coordination.groups.consumer.events import SettingsSeen, TopicsSeen
from ottla.coordination.groups.consumer.group import ConsumerGroup
from ottla.coordination.groups.events import AlarmRang, ExpiryDue, Loaded, TopicsDeleted
from ottla.coordination.groups.records import decode_record, encode_record, producer_of, within_transaction
from ottla.coordination.groups.shard import Shard
from ottla.coordination.offsets.pending import TransactionEnded
from ottla.errors import ErrorCode, KafkaError
from ottla.escaping import escape_controls
from ottla.model import OffsetAndMetadata, TopicPartition
from ottla.storage.batches.damage import OutOfServiceError

log = logging.getLogger(__name__)

FIRST_EPOCH = 1
"""Of a group of the newer protocol before its first subscription, as in Kafka: with it the group is in epoch 2."""

CODING = Coding(encode_record, decode_record, Transactional(producer_of, within_transaction, TransactionEnded))
LONG_BYTES = 4 * 1024 * 1024
"""A log from this size on is read in a thread: it takes longer than a loop may stand still."""


class Loading:
    """What happens while a partition is being read."""

    def __init__(self) -> None:
        self.deleted: set[str] = set()
        """Topics."""
        self.ended: list[tuple[int, bool]] = []
        """Transactions, by producer and whether they were committed. Their markers may have come too late to be read."""


class CommittedOffsets:
    """The offsets of one group, for one request: its coordinator is looked for once, and not for each partition."""

    def __init__(self, shard: Shard, group: str) -> None:
        self._shard = shard
        self._group = group

    def all(self) -> Mapping[TopicPartition, OffsetAndMetadata]:
        return self._shard.offsets.fetch(self._group, None)

    def offset(self, place: TopicPartition) -> OffsetAndMetadata | None:
        return self._shard.offsets.fetch(self._group, (place,)).get(place)

    def is_unstable(self, place: TopicPartition) -> bool:
        """True if an open transaction may change the offset."""
        return bool(self._shard.pending) and self._shard.pending.holds(self._group, place)


class Groups:
    """All groups of this broker."""

    def __init__(self, config: BrokerConfig, surroundings: Surroundings, disk: Disk) -> None:
        self._config = config
        self._group_config = group_config(config)
        self._topics = surroundings.topics
        self._partitions = surroundings.partitions
        self._clock = surroundings.clock
        self._timers = surroundings.timers
        self._appended = surroundings.appended
        self._commitment = surroundings.commitment
        self._ensure = surroundings.ensure
        self._disk = disk
        self._runtimes: dict[Partition, Runtime[Shard]] = {}
        self._loading: dict[Partition, Loading] = {}
        """Partitions that are being read."""
        self.listeners: list[Callable[[Any], None]] = []
        """Who is told what happens in groups; each note has a text."""

    def ask(
        self, group: str, event: Callable[[int], Any], later: Callable[[Any], None] | None = None, *, make: bool = True
    ) -> Any:
        """The reply of the machine that has `group`, as `Runtime.ask` gives it; KafkaError where it cannot be asked.

        Without `make` a broker that never had groups answers GROUP_ID_NOT_FOUND, and does not begin to keep any.
        """
        return self._shown(self._runtime(group, make=make)).ask(event, later)

    def find(self, group: str) -> ClassicGroup | ConsumerGroup | None:
        """The group of that id, None where nobody knows it; KafkaError where it cannot be read."""
        runtime = self._existing(group)
        return None if runtime is None else runtime.machine.find(group)

    def fault_of(self, group: str) -> OutOfServiceError | None:
        """What keeps a group out of service until a person has looked at it."""
        return fault_in(lambda: self._existing(group))

    def all(self) -> Iterator[ClassicGroup | ConsumerGroup]:
        """Every group but those that are out of service; KafkaError where some cannot be read yet."""
        for partition in self._stored():
            with suppress(OutOfServiceError):
                yield from self._runtime_of(partition).machine.all()

    def loaded(self) -> Iterator[tuple[ClassicGroup | ConsumerGroup, Callable[[Hashable], float | None]]]:
        """Groups that are in memory and have, or had, members, and when the alarms of each go off; nothing is read for this."""
        for runtime in self._runtimes.values():
            machine, due = runtime.machine, runtime.due
            yield from ((group, due) for group in machine.groups.values())
            yield from ((group, due) for group in machine.consumers.groups.values())

    @property
    def loaded_count(self) -> int:
        return sum(len(each.machine.groups) + len(each.machine.consumers.groups) for each in self._runtimes.values())

    def known(self, group: str) -> ClassicGroup | ConsumerGroup | None:
        """A group that is in memory."""
        return next((found for each in self._runtimes.values() if (found := each.machine.find(group))), None)

    def fetch(
        self, group: str, partitions: Sequence[TopicPartition] | None
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        """What a group committed for these partitions, or for all; what it did not commit is left out."""
        runtime = self._existing(group)
        return {} if runtime is None else runtime.machine.offsets.fetch(group, partitions)

    def offsets_of(self, group: str) -> CommittedOffsets | None:
        """What a group committed, partition by partition; None where it never had a coordinator."""
        runtime = self._existing(group)
        return None if runtime is None else CommittedOffsets(runtime.machine, group)

    def fetch_error(self, group: str, member_id: str | None, epoch: int) -> int:
        """Why somebody who claims to be a member of a group is not told what it committed."""
        runtime = self._existing(group)
        return ErrorCode.NONE if runtime is None else runtime.machine.fetch_error(group, member_id, epoch)

    def unstable(self, group: str, partitions: Iterable[TopicPartition]) -> set[TopicPartition]:
        """Those whose offset an open transaction may change."""
        runtime = self._existing(group)
        pending = runtime.machine.pending if runtime else None
        return {each for each in partitions if pending.holds(group, each)} if pending else set()

    def uncommitted(self, group: str) -> tuple[Leadership, int] | None:
        """What has to be committed until all is that is known of a group here."""
        partition = self._partition_of(group)
        return None if partition is None else uncommitted(partition)

    def transaction_ended(self, partition: Partition, producer_id: int, *, commit: bool) -> None:
        """A marker was appended; where it was to offsets, they count from now on, or are dropped."""
        runtime = self._runtimes.get(partition)
        if runtime is not None:
            runtime.transaction_ended(producer_id, commit=commit)
        elif (loading := self._loading.get(partition)) is not None:
            loading.ended.append((producer_id, commit))

    def topics_deleted(self, names: Collection[str]) -> None:
        """Forget what groups committed for topics that are no more, and all machines where it was their own topic."""
        if CONSUMER_OFFSETS in names:
            self._retire()
        for partition in self._stored():
            with suppress(StillLoading, OutOfServiceError):
                self._runtime_of(partition).ask(lambda ticket: TopicsDeleted(ticket, names))
        for loading in self._loading.values():
            loading.deleted.update(names)

    def expire(self) -> None:
        """Forget offsets that are too old, and groups of which nothing is left."""
        for partition in self._stored():
            with suppress(StillLoading, OutOfServiceError):
                count = self._runtime_of(partition).ask(lambda ticket: ExpiryDue(ticket, self._clock.wall_ms()))
                if count:
                    log.info("%s: %d offsets have expired", partition.topic_partition, count)

    def _shown(self, runtime: Runtime[Shard]) -> Runtime[Shard]:
        """A machine that knows the topics there are by now, and what single groups are told."""
        image = self._topics.image()
        if runtime.machine.consumers.image is not image:
            runtime.ask(lambda ticket: TopicsSeen(ticket, image))
        settings = self._topics.group_settings()
        if runtime.machine.consumers.settings is not settings:
            runtime.ask(lambda ticket: SettingsSeen(ticket, settings))
        return runtime

    def retire(self, partition: Partition) -> None:
        """Forget the groups of a partition that is another's now; what is being read of it is not taken up."""
        self._loading.pop(partition, None)
        runtime = self._runtimes.pop(partition, None)
        if runtime is not None:
            runtime.retire(not_here(partition.topic_partition))

    def _retire(self) -> None:
        gone = KafkaError(ErrorCode.NOT_COORDINATOR, f"{CONSUMER_OFFSETS} has been deleted")
        runtimes, self._runtimes = self._runtimes, {}
        for runtime in runtimes.values():
            runtime.retire(gone)

    def _stored(self) -> Iterator[Partition]:
        """The partitions that hold anything, and are led here."""
        topic = self._topics.named(CONSUMER_OFFSETS)
        for index in range(len(topic.partitions) if topic else 0):
            partition = self._partitions.find(CONSUMER_OFFSETS, index)
            if partition is not None and partition.leads and self._is_stored(partition):
                yield partition

    def _is_stored(self, partition: Partition) -> bool:
        try:
            return partition in self._runtimes or bool(partition.log.end_offset)
        except KafkaError as error:  # the groups of other partitions go on
            self._partitions.complaints.tell(f"{partition.topic_partition}: {error}")
            return False

    def _runtime(self, group: str, *, make: bool) -> Runtime[Shard]:
        made = self._ensure(CONSUMER_OFFSETS) if make else None
        runtime = self._existing(group)
        if runtime is None and not make:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group!r}")
        if runtime is None:
            reason = getattr(made, "error_message", None)
            if getattr(made, "error_code", None) == ErrorCode.UNKNOWN_SERVER_ERROR:
                raise OutOfServiceError(f"{CONSUMER_OFFSETS} cannot be made: {reason}")
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{CONSUMER_OFFSETS} cannot be made: {reason}")
        return runtime

    def _existing(self, group: str) -> Runtime[Shard] | None:
        partition = self._partition_of(group)
        return None if partition is None else self._runtime_of(partition)

    def _partition_of(self, group: str) -> Partition | None:
        """Where a group is kept; None before any was, KafkaError(NOT_COORDINATOR) where another broker has it."""
        topic = self._topics.named(CONSUMER_OFFSETS)
        if topic is None:
            return None
        place = partition_of_key(topic, group)
        partition = self._partitions.find(*place)
        if partition is None or not partition.leads:
            raise not_here(place)
        return partition

    def _runtime_of(self, partition: Partition) -> Runtime[Shard]:
        runtime = self._runtimes.get(partition)
        if runtime is not None:
            return runtime
        if partition.fault is not None:
            raise partition.fault
        if partition.log.size_bytes < LONG_BYTES:
            try:
                built = self._built(partition)
            except OutOfServiceError as error:
                raise self._partitions.take_out_of_service(partition, error) from None
            return self._take_up(partition, built)
        self._load(partition)
        raise StillLoading(partition)

    def is_loading(self, partition: Partition) -> bool:
        """Whether a partition's log is being read beside the loop."""
        return partition in self._loading

    def relocate(self, partition: Partition) -> None:
        """Go on with the log that a partition has now, in another directory."""
        runtime = self._runtimes.get(partition)
        if runtime is not None:
            runtime.log = partition.log

    def _load(self, partition: Partition) -> None:
        """Read a long log beside the loop; nothing but markers is appended to it until its machine is there."""
        if partition in self._loading:
            return
        loading = self._loading[partition] = Loading()
        built: list[Runtime[Shard]] = []

        def done(error: BaseException | None) -> None:
            if self._loading.get(partition) is not loading:
                return  # another led it meanwhile, and may have written to it, or cut it
            del self._loading[partition]
            if isinstance(error, OutOfServiceError):
                self._partitions.take_out_of_service(partition, error)
            elif error is not None:
                log.error("the groups in %s cannot be read: %s", partition.topic_partition, error)
            elif self._partitions.find(*partition.topic_partition) is partition:
                for producer_id, commit in loading.ended:  # once more does no harm: nothing was promised meanwhile
                    built[0].transaction_ended(producer_id, commit=commit)
                self._take_up_loaded(partition, built[0], loading)

        self._disk.submit(lambda: built.append(self._built(partition)), done)

    def _take_up_loaded(self, partition: Partition, built: Runtime[Shard], loading: Loading) -> None:
        try:
            runtime = self._take_up(partition, built)
            runtime.ask(lambda ticket: TopicsDeleted(ticket, loading.deleted))
        except KafkaError as error:  # whoever asks next has it tried again
            log.error("the groups in %s cannot be taken up: %s", partition.topic_partition, error)

    def _take_up(self, partition: Partition, runtime: Runtime[Shard]) -> Runtime[Shard]:
        for gone in [each for each in self._runtimes if each.log.closed]:  # the topic was deleted
            del self._runtimes[gone]
        self._runtimes[partition] = runtime
        try:
            self._welcome(runtime)
        except KafkaError:
            del self._runtimes[partition]  # which would know no time: it is built again when it is asked again
            raise
        return runtime

    def _welcome(self, runtime: Runtime[Shard]) -> None:
        self._shown(runtime).ask(lambda ticket: Loaded(ticket, self._clock.wall_ms()))

    def _built(self, partition: Partition) -> Runtime[Shard]:
        def ring(name: Hashable) -> None:
            if partition.log.closed:  # the topic was deleted, and the groups in it
                self._runtimes.pop(partition, None)
                return
            try:
                self._shown(runtime).ask(lambda ticket: AlarmRang(ticket, name, self._clock.wall_ms()))  # type: ignore[arg-type]
            except KafkaError as error:
                log.error("%s: %s", partition.topic_partition, error)

        runtime = Runtime(
            lambda: Shard(self._group_config),
            partition.log,
            CODING,
            self._clock,
            durable=False,
            hooks=Hooks(
                appended=lambda size: self._appended(partition, size),
                noted=self._noted,
                rebuilt=lambda: self._welcome(runtime),
                check=lambda: ensure_may_append(partition),
                hold=lambda hand_out: self._commitment.hold(partition, hand_out),
                alarms=Alarms(self._timers, ring),
            ),
            leader_epoch=lambda: partition.leader_epoch,
        )
        return runtime

    def _noted(self, note: Any) -> None:
        if log.isEnabledFor(logging.INFO):
            log.info("%s", escape_controls(note))
        for listener in self.listeners:
            listener(note)


def group_config(config: BrokerConfig) -> GroupConfig:
    """The part of the settings that is for groups."""
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
    )
