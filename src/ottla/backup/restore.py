"""Restore topics, groups' offsets and access rules from a folder into a cluster.

For each topic: create it with configs under which nothing is deleted or rejected; fill the offsets before the first record and delete
that filling (DeleteRecords); send the records; set the configs of the backup. Records are sent by an idempotent producer, whose
acknowledged offsets are compared with the map. An interrupted restore, or a later one of a newer state of the backup, continues at the end
offset of each partition, after it has compared the last record there with the backup.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.backup.folder import BackupFolder
from ottla.backup.manifest import BackupError, GroupBackup, Manifest, PartitionBackup, TopicBackup
from ottla.backup.offset_map import OffsetMap, OffsetPolicy, choose_base
from ottla.backup.segments import count_below, read_records
from ottla.backup.selection import Selection
from ottla.backup.target import LARGEST_MESSAGE, RestoreTarget
from ottla.copy_progress import CopyProgress, CopyReport
from ottla.errors import OttlaError
from ottla.model import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from ottla.client.consumer import Consumer
    from ottla.client.producer import Producer
    from ottla.client.producer.future import RecordFuture
    from ottla.records.columns import Columns

FILLER = b"ottla restore"
"""The value of the records that fill offsets before the first record; they are deleted before it is sent."""
FILLED_AT_ONCE = 100_000
POLL_SECONDS = 0.5
CHECK_SECONDS = 10.0
"""The time to wait for the last record of a partition in the target."""
CLOSE_SECONDS = 5.0
WRITER = {
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 20,
    "batch.size": 1 << 18,
    "compression.type": "zstd",
    "max.request.size": LARGEST_MESSAGE,
}
READER = {"enable.auto.commit": False, "auto.offset.reset": "none", "allow.auto.create.topics": False}
Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class RestoreSettings:
    """A folder, a cluster, and the options of the restore."""

    client: Mapping[str, Any]
    """Client settings: `bootstrap.servers`, login."""
    folder: Path
    selection: Selection = field(default_factory=Selection)
    prefix: str = ""
    """Prefix of the topics' names in the target."""
    offset_policy: OffsetPolicy = "keep"
    replication_factor: int | None = None
    """None: that of the backup, or the number of brokers if there are fewer."""
    with_configs: bool = True
    topic_configs: Mapping[str, str] = field(default_factory=dict)
    """Configs of all restored topics, instead of those of the backup."""
    with_groups: bool = True
    with_access: bool = False
    only_groups: bool = False
    """Restore the offsets of groups again, without records."""


class RestoreReport(NamedTuple):
    """The result of a restore."""

    records: int
    """The number of records that were sent in this run."""
    topics: int
    renumbered: tuple[TopicPartition, ...]
    """Partitions of the target in which records have other offsets than in the source."""
    groups: int
    access_rules: int
    quotas: int
    is_complete: bool
    """False if the restore was stopped; the same command continues it."""
    skipped: tuple[str, ...]
    """Restored partitions of the backup that its last run had skipped, because they had no leader."""


class PartitionPlan(NamedTuple):
    """The state of a partition in the target, and where it has to be."""

    source: PartitionBackup
    offsets: OffsetMap
    start: int
    """The target's start offset before the restore."""
    end: int
    """The target's end offset before the restore."""

    @property
    def remaining(self) -> int:
        """The number of records to send."""
        return self.offsets.end - max(self.end, self.offsets.base)


class Restore:
    """One restore. `say` receives warnings, `show` regularly the progress."""

    def __init__(
        self,
        settings: RestoreSettings,
        say: Say = lambda text: None,
        show: Callable[[CopyReport], None] = lambda report: None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.stopping = False
        self._settings = settings
        self._folder = BackupFolder(settings.folder)
        self._say, self._show, self._now = say, show, now
        self._progress = CopyProgress("restored", now())

    def stop(self) -> None:
        """Stop soon; may be called by any thread. The same restore continues when it is run again."""
        self.stopping = True

    def run(self) -> RestoreReport:
        """Restore. Raises BackupError for a damaged file, or before any change if a topic of the target has other records."""
        from ottla.client.admin import Admin
        from ottla.client.admin.config import select_admin_settings
        from ottla.client.consumer import Consumer

        manifest = self._folder.read_manifest()
        names = self._settings.selection.choose_topics(manifest.topics, "the backup")
        with Admin(select_admin_settings(self._settings.client)) as admin:
            target = RestoreTarget(admin, self._say)
            brokers = target.count_brokers()
            with Consumer({**self._settings.client, **READER}) as consumer:
                existing = target.count_partitions(map(self._target_name, names))
                plans = self._plan(manifest, names, existing, consumer)
            if not self._settings.only_groups:
                self._restore_topics(manifest, names, existing, brokers, target, plans)
            restored, access = 0, (0, 0)
            if not self.stopping:
                restored = self._restore_groups(manifest, target, plans)
                if self._settings.with_access:
                    access = target.restore_access(manifest.access_rules or [], manifest.quotas or [])
                    target.warn_of_users(manifest.users or {})
        renumbered = tuple(
            tp for tp, plan in plans.items() if plan.source.records and not plan.offsets.has_kept_offsets
        )
        skipped = tuple(each for each in manifest.skipped if each.rpartition("-")[0] in names)
        return RestoreReport(
            self._progress.records, len(names), renumbered, restored, *access, not self.stopping, skipped
        )

    def _target_name(self, topic: str) -> str:
        return self._settings.prefix + topic

    def _plan(
        self, manifest: Manifest, names: list[str], existing: Mapping[str, int], consumer: Consumer[Any, Any]
    ) -> dict[TopicPartition, PartitionPlan]:
        """Return the plan of each partition. Raises BackupError for topics that have other records than the backup."""
        plans, problems = {}, []
        for name in names:
            topic, target = manifest.topics[name], self._target_name(name)
            count = existing.get(target, 0)
            if count > len(topic.partitions):
                problems.append(
                    f"topic {target} has {count} partitions, and the backup {len(topic.partitions)}: delete the topic, or "
                    "restore under another name with --prefix"
                )
                continue
            places = [TopicPartition(target, number) for number in range(count)]
            starts, ends = consumer.beginning_offsets(places), consumer.end_offsets(places)
            for number, partition in enumerate(topic.partitions):
                tp = TopicPartition(target, number)
                base = choose_base(partition, self._settings.offset_policy, f"{name}-{number}")
                plan = PartitionPlan(partition, OffsetMap(base, partition), starts.get(tp, 0), ends.get(tp, 0))
                plans[tp] = plan
                if problem := self._find_difference(tp, plan, consumer):
                    problems.append(problem)
        if problems:
            more = f" ({len(problems) - 1} more partitions or topics are in the way)" if len(problems) > 1 else ""
            raise BackupError(f"nothing was changed: {problems[0]}{more}")
        return plans

    def _find_difference(self, tp: TopicPartition, plan: PartitionPlan, consumer: Consumer[Any, Any]) -> str | None:
        """Return why a partition of the target is not the beginning of the backup, or None."""
        remedy = "delete the topic, or restore under another name with --prefix"
        if plan.end > plan.offsets.end:
            return (
                f"{tp} ends at offset {plan.end}, and would end at {plan.offsets.end} after the restore: it has other "
                f"records; {remedy}"
            )
        if plan.start >= plan.end:
            is_expected = plan.end in (0, plan.offsets.base) or plan.end > plan.offsets.base
            return None if is_expected else f"{tp} starts at offset {plan.start}: it has had other records; {remedy}"
        found = read_record(consumer, tp, plan.end - 1)
        if found is None:
            return None  # compacted or aborted; there is nothing to compare
        if plan.end <= plan.offsets.base:
            expected: tuple[Any, ...] = (None, FILLER, [])
            is_equal = (found.key, found.value) == expected[:2]
        else:
            columns, row = next(self._read_from(plan.source, plan.end - 1 - plan.offsets.base))
            expected = (columns.key(row), columns.value(row), columns.headers(row))
            is_equal = (found.key, found.value, list(found.headers)) == expected
        if is_equal:
            return None
        return f"{tp} has another record at offset {plan.end - 1} than the backup; {remedy}"

    def _restore_topics(
        self,
        manifest: Manifest,
        names: list[str],
        existing: Mapping[str, int],
        brokers: int,
        target: RestoreTarget,
        plans: Mapping[TopicPartition, PartitionPlan],
    ) -> None:
        from ottla.client.config.common_config import select_common_settings
        from ottla.client.producer import Producer

        remaining = sum(plan.remaining for plan in plans.values())
        producer = Producer({**WRITER, **select_common_settings(self._settings.client)})
        try:
            for name in names:
                topic, there = manifest.topics[name], self._target_name(name)
                factor = self._settings.replication_factor or self._choose_factor(there, topic, brokers)
                with_configs = self._settings.with_configs
                target.prepare_topic(there, topic, existing.get(there), factor, with_configs=with_configs)
                for number in range(len(topic.partitions)):
                    tp = TopicPartition(there, number)
                    writer = PartitionWriter(producer, target, tp, plans[tp])
                    if not self._restore_partition(writer, plans[tp], remaining):
                        return
                if with_configs or there not in existing or target.is_in_import(there):
                    configs = topic.configs if with_configs else {}
                    target.finish_topic(there, {**configs, **self._settings.topic_configs})
        finally:
            with suppress(OttlaError):
                producer.close(CLOSE_SECONDS)

    def _choose_factor(self, name: str, topic: TopicBackup, brokers: int) -> int:
        if topic.replication_factor <= brokers:
            return topic.replication_factor
        self._say(
            f"topic {name} gets replication factor {brokers} instead of {topic.replication_factor}: the cluster has "
            f"{brokers} brokers"
        )
        return brokers

    def _restore_partition(self, writer: PartitionWriter, plan: PartitionPlan, remaining: int) -> bool:
        """Send the records of a partition that the target lacks. Return False if the restore is stopped."""
        if not writer.fill_to_base(lambda: self.stopping):
            return False
        if not plan.remaining:
            return True
        for columns, first in self._read_from(plan.source, max(plan.end - plan.offsets.base, 0)):
            if self.stopping:
                break
            writer.send(columns, first)
            self._progress.add(columns.count - first, self._now())
            self._show(self._progress.report(remaining - self._progress.records, self._now()))
        writer.finish()
        return not self.stopping

    def _read_from(self, partition: PartitionBackup, index: int) -> Iterator[tuple[Columns, int]]:
        """Yield the records from number `index` on, as columns and the first row; segments are checked first."""
        for segment in partition.segments:
            if index >= segment.records:
                index -= segment.records
                continue
            for columns in read_records(self._folder.check_segment(segment)):
                if index < columns.count:
                    yield columns, index
                index = max(0, index - columns.count)

    def _restore_groups(
        self, manifest: Manifest, target: RestoreTarget, plans: Mapping[TopicPartition, PartitionPlan]
    ) -> int:
        """Set the groups' offsets in the restored topics; return the number of groups."""
        if not self._settings.with_groups:
            return 0
        restored = 0
        for name in self._settings.selection.choose_groups(manifest.groups):
            group = manifest.groups[name]
            offsets = self._translate(group, plans)
            if (offsets or group.configs) and target.restore_group(name, group, offsets):
                restored += 1
        return restored

    def _translate(
        self, group: GroupBackup, plans: Mapping[TopicPartition, PartitionPlan]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the group's offsets in the target."""
        offsets = {}
        for each in group.offsets:
            tp = TopicPartition(self._target_name(each.topic), each.partition)
            if (plan := plans.get(tp)) is None:
                continue
            place = plan.offsets.locate(each.offset)
            if isinstance(place, tuple):
                index, before = place
                path = self._folder.check_segment(plan.source.segments[index])
                place = before + count_below(path, each.offset)
            offsets[tp] = OffsetAndMetadata(place, each.metadata)
        return offsets


class PartitionWriter:
    """Sends the records of one partition, and compares the acknowledged offsets with the expected ones."""

    def __init__(self, producer: Producer, target: RestoreTarget, tp: TopicPartition, plan: PartitionPlan) -> None:
        self._producer = producer
        self._target = target
        self._tp = tp
        self._plan = plan
        self._next_offset = max(plan.end, plan.offsets.base)
        self._sent: deque[tuple[RecordFuture, int]] = deque()
        """The last record of each chunk, and its expected offset."""

    def fill_to_base(self, is_stopping: Callable[[], bool]) -> bool:
        """Make the first record's offset the next one. Return False if the restore was stopped meanwhile."""
        plan, base = self._plan, self._plan.offsets.base
        if base == 0 or plan.start >= base:
            return True
        for start in range(plan.end, base, FILLED_AT_ONCE):
            if is_stopping():
                return False
            stop = min(base, start + FILLED_AT_ONCE)
            for _ in range(start, stop):
                future = self._producer.send(self._tp.topic, FILLER, partition=self._tp.partition, timestamp=0)
            self._check(future, stop - 1)
        self._target.delete_records_before(self._tp, base)
        return True

    def send(self, columns: Columns, first: int) -> None:
        """Send the rows from `first` on."""
        topic, partition = self._tp
        send = self._producer.send
        for row in range(first, columns.count):
            timestamp = columns.timestamps[row]
            future = send(
                topic,
                columns.value(row),
                key=columns.key(row),
                partition=partition,
                timestamp=timestamp if timestamp >= 0 else None,
                headers=columns.headers(row),
            )
        self._next_offset += columns.count - first
        self._sent.append((future, self._next_offset - 1))
        while len(self._sent) > 2:
            self._check(*self._sent.popleft())

    def finish(self) -> None:
        """Wait until all records are acknowledged."""
        self._producer.flush()
        while self._sent:
            self._check(*self._sent.popleft())

    def _check(self, future: RecordFuture, expected: int) -> None:
        offset = future.result().offset
        if offset != expected:
            raise BackupError(
                f"a record of {self._tp} got offset {offset} instead of {expected}: another producer writes to the topic. "
                "Stop it, delete the topic, and restore again"
            )


def read_record(consumer: Consumer[Any, Any], tp: TopicPartition, offset: int) -> Any:
    """Return the record at an offset, or None if there is none."""
    consumer.assign([tp])
    consumer.seek(tp, offset)
    deadline = time.monotonic() + CHECK_SECONDS
    while consumer.position(tp) <= offset and time.monotonic() < deadline:
        for record in consumer.poll(POLL_SECONDS):
            return record if record.offset == offset else None
    return None
