"""Back up a cluster: one run copies what is new since the last one.

A run reads, in this order: the offsets of the groups, the end offsets of the partitions, the records up to these ends. It reads
with `read_committed`, so that the end of a partition is its last stable offset. It follows:

* A partition of the backup contains every record that was committed before the run read its end, and no later one, except those
  that retention and compaction had removed.
* No group's offset is beyond the records of the backup, except that of a group that reads uncommitted records.
* Partitions are read one after the other: of a transaction that commits while their ends are read, one partition may
  have its records and another not. The next run adds the rest.

Compaction removes the tombstone of a key `delete.retention.ms` after its record. A run that starts later than that would never see the
tombstone, and the deleted key would stay in the backup. It therefore reads such a topic again from its start.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from ottla.backup.folder import BackupFolder
from ottla.backup.manifest import (
    FORMAT,
    VERSION,
    BackupError,
    Manifest,
    PartitionBackup,
    Run,
    SegmentFormat,
    TopicBackup,
)
from ottla.backup.record_copy import RecordCopy, Span
from ottla.backup.selection import Selection
from ottla.backup.survey import SourceSurvey, SourceTopic
from ottla.copy_progress import CopyReport
from ottla.errors import KafkaTimeoutError
from ottla.model import TopicPartition

if TYPE_CHECKING:
    from ottla.client.consumer import Consumer

READER = {
    "isolation.level": "read_committed",
    "enable.auto.commit": False,
    "auto.offset.reset": "none",
    "allow.auto.create.topics": False,
}
FETCH = {"max.partition.fetch.bytes": 4 << 20}
LEADER_SECONDS = 10.0
"""The time to wait for the leader of partitions that can be skipped."""
Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class BackupSettings:
    """A cluster, a folder, and the selection."""

    client: Mapping[str, Any]
    """Client settings: `bootstrap.servers`, login."""
    folder: Path
    selection: Selection | None = None
    """None: that of the last run, or everything."""
    segment_format: SegmentFormat | None = None
    """None: that of the last run, or `log`."""
    with_groups: bool = True
    with_access: bool = True
    """Includes access rules and quotas if all topics are selected."""
    skips_leaderless: bool = False
    """Skips partitions that have no leader, or one that does not answer, instead of waiting for it."""
    save_seconds: float = 30.0
    """The interval at which open files are finished and the progress is saved; a killed run repeats at most that."""


class BackupReport(NamedTuple):
    """The result of a run."""

    records: int
    size_bytes: int
    topics: int
    groups: int
    is_complete: bool
    """False if the run was stopped; the next run continues."""
    total_records: int
    """The number of records in the whole backup."""
    skipped: tuple[str, ...]
    """The partitions that were skipped, because they had no leader: the backup is incomplete."""


class Backup:
    """One run of a backup. `say` receives warnings, `show` regularly the progress."""

    def __init__(
        self,
        settings: BackupSettings,
        say: Say = lambda text: None,
        show: Callable[[CopyReport], None] = lambda report: None,
        now: Callable[[], float] = time.monotonic,
        wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.stopping = False
        self._settings = settings
        self._folder = BackupFolder(settings.folder)
        self._say, self._show, self._now = say, show, now
        self._wall_ms = wall_ms
        self._started_ms = wall_ms()

    def stop(self) -> None:
        """Stop soon; may be called by any thread. The next run continues."""
        self.stopping = True

    def run(self) -> BackupReport:
        """Copy what is new. Raises BackupError if the folder has the backup of another cluster or is damaged."""
        from ottla.client.admin import Admin
        from ottla.client.admin.config import select_admin_settings
        from ottla.client.consumer import Consumer

        with self._folder.lock(), Admin(select_admin_settings(self._settings.client)) as admin:
            manifest = self._open_manifest()
            survey = SourceSurvey(admin, manifest.selection, self._say)
            self._check_cluster(manifest, survey.cluster_id())
            before = manifest.size_bytes
            topics = survey.read_topics()
            groups = survey.read_groups(set(topics)) if self._settings.with_groups else {}
            with Consumer({**FETCH, **self._settings.client, **READER}) as consumer:
                spans = self._plan_spans(manifest, topics, consumer)
                copy = RecordCopy(
                    self._folder,
                    manifest,
                    consumer,
                    self._started_ms,
                    self._settings.save_seconds,
                    is_stopping=lambda: self.stopping,
                    say=self._say,
                    show=self._show,
                    now=self._now,
                )
                copy.copy(spans)
            if not self.stopping:
                manifest.groups = groups
                if self._settings.with_access and manifest.selection.is_whole_cluster:
                    manifest.access_rules, manifest.quotas = survey.read_access_rules(), survey.read_quotas()
                    manifest.users = survey.read_users()
                self._publish(manifest, topics, before, copy.records)
        return BackupReport(
            copy.records,
            manifest.size_bytes - before,
            len(topics),
            len(groups),
            not self.stopping,
            manifest.records,
            manifest.skipped,
        )

    def _open_manifest(self) -> Manifest:
        settings, folder = self._settings, self._folder
        manifest = folder.read_progress()
        if manifest is None and folder.is_backup:
            manifest = folder.read_manifest()
        if manifest is None:
            kind = settings.segment_format or "log"
            return Manifest(FORMAT, VERSION, str(uuid4()), None, kind, settings.selection or Selection())
        if settings.segment_format not in (None, manifest.segment_format):
            raise BackupError(
                f"the backup in {folder.path} has the format {manifest.segment_format}, not {settings.segment_format}: "
                "give another folder"
            )
        if settings.selection is not None:
            manifest.selection = settings.selection
        for segment in manifest.segments:
            folder.check_size(segment)  # so that a lost file is noticed by the next run, and not by a restore
        return manifest

    def _check_cluster(self, manifest: Manifest, cluster_id: str | None) -> None:
        if manifest.cluster_id is None:
            manifest.cluster_id = cluster_id
        elif cluster_id is not None and cluster_id != manifest.cluster_id:
            raise BackupError(
                f"the backup in {self._folder.path} is of the cluster {manifest.cluster_id!r}, and this cluster is "
                f"{cluster_id!r}: give another folder"
            )

    def _plan_spans(
        self, manifest: Manifest, topics: Mapping[str, SourceTopic], consumer: Consumer[Any, Any]
    ) -> dict[TopicPartition, Span]:
        """Return the offsets to read, after new topics and partitions were added to the manifest."""
        for name, topic in topics.items():
            self._check_topic(name, topic, manifest.topics.get(name))
        places = [TopicPartition(name, number) for name, topic in topics.items() for number in range(topic.partitions)]
        leaders = {tp: topics[tp.topic].leaders[tp.partition] for tp in places}
        starts, ends = self._read_bounds(leaders, consumer)
        for name, topic in topics.items():
            known = manifest.topics.get(name)
            previous = known
            if (
                known is not None
                and topic.is_compacted
                and self._started_ms - known.read_ms > topic.delete_retention_ms
            ):
                self._say(
                    f"topic {name} is read again from its start: the last backup is older than delete.retention.ms="
                    f"{topic.delete_retention_ms}, so that deleted keys may have been missed"
                )
                known = None
            if known is None:
                known = TopicBackup(topic.topic_id, topic.replication_factor, {}, [], self._started_ms)
                manifest.topics[name] = known
            known.replication_factor, known.configs = topic.replication_factor, topic.configs
            for number in range(len(known.partitions), topic.partitions):
                start = starts.get(TopicPartition(name, number))
                if start is None and previous is not None and number < len(previous.partitions):
                    known.partitions.append(previous.partitions[number])  # it is skipped, so its records are kept
                    known.read_ms = previous.read_ms
                else:
                    known.partitions.append(PartitionBackup(start or 0, start or 0))
        for tp in places:
            partition = manifest.topics[tp.topic].partitions[tp.partition]
            if partition.is_skipped and not partition.end and tp in starts:
                partition.start = partition.end = starts[tp]  # it was never read
            partition.is_skipped = tp not in ends
        return {tp: self._plan_span(manifest, tp, starts[tp], ends[tp]) for tp in ends}

    def _read_bounds(
        self, leaders: Mapping[TopicPartition, int], consumer: Consumer[Any, Any]
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        """Return the start and the end offset of each partition, without those that are skipped.

        Without a majority of the controllers, the metadata names leaders that have ended; so each leader is asked alone.
        """
        if not self._settings.skips_leaderless:
            return self._read_all_bounds(leaders, consumer)
        led: dict[int, list[TopicPartition]] = {}
        for tp, leader in leaders.items():
            if leader >= 0:
                led.setdefault(leader, []).append(tp)
        starts: dict[TopicPartition, int] = {}
        ends: dict[TopicPartition, int] = {}
        for places in led.values():
            with suppress(KafkaTimeoutError):
                first = consumer.beginning_offsets(places, LEADER_SECONDS)
                ends |= consumer.end_offsets(places, LEADER_SECONDS)
                starts |= first
        return starts, ends

    def _read_all_bounds(
        self, leaders: Mapping[TopicPartition, int], consumer: Consumer[Any, Any]
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        places = list(leaders)
        try:
            return consumer.beginning_offsets(places), consumer.end_offsets(places)
        except KafkaTimeoutError as error:
            remedy = "start the brokers that are away, or back up the other partitions with --skip-leaderless"
            if waiting := [str(tp) for tp, leader in leaders.items() if leader < 0]:
                more = f" and {len(waiting) - 1} other partitions have" if len(waiting) > 1 else " has"
                raise KafkaTimeoutError(f"{waiting[0]}{more} no leader: {remedy}") from error
            raise KafkaTimeoutError(f"{error}; {remedy}") from error

    def _check_topic(self, name: str, topic: SourceTopic, known: TopicBackup | None) -> None:
        if known is not None and known.topic_id != topic.topic_id:
            raise BackupError(
                f"topic {name} was deleted and created again since the last backup in {self._folder.path}: give another "
                f"folder, or leave the topic out with --exclude {name}"
            )

    def _plan_span(self, manifest: Manifest, tp: TopicPartition, start: int, end: int) -> Span:
        done = manifest.topics[tp.topic].partitions[tp.partition].end
        if done > end:
            raise BackupError(
                f"{tp} ends at offset {end}, and the backup has its records up to {done}: the cluster has lost records. "
                "Make a new backup into another folder, and keep this one"
            )
        self._warn_of_lost_offsets(tp, done, start)
        return Span(max(start, done), end)

    def _warn_of_lost_offsets(self, tp: TopicPartition, position: int, start: int) -> None:
        if position < start:
            self._say(f"{start - position} offsets of {tp} were deleted in the cluster before they were backed up")

    def _publish(self, manifest: Manifest, topics: Iterable[str], before: int, records: int) -> None:
        for name in topics:
            if not any(partition.is_skipped for partition in manifest.topics[name].partitions):
                manifest.topics[name].read_ms = self._started_ms
        run = Run(self._started_ms, self._wall_ms(), records, manifest.size_bytes - before)
        manifest.runs.append(run)
        self._folder.publish(manifest)
