"""Copy ranges of offsets from a consumer into segment files, some partitions at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.backup.folder import BackupFolder
from ottla.backup.manifest import Manifest, PartitionBackup
from ottla.backup.segments import SegmentWriter, open_writer
from ottla.copy_progress import CopyProgress, CopyReport
from ottla.errors import KafkaTimeoutError, OffsetOutOfRangeError
from ottla.model import TopicPartition

if TYPE_CHECKING:
    from ottla.client.consumer import Consumer
    from ottla.records.columns import Columns

PARTITIONS_AT_ONCE = 64
"""The number of partitions that are read concurrently; each has an open file."""
SEGMENT_BYTES = 256 << 20
POLL_SECONDS = 0.5


class Span(NamedTuple):
    """Offsets to read."""

    start: int
    end: int


class OpenSegment:
    """A segment that is being written, and the range of its records."""

    def __init__(self, writer: SegmentWriter, path: Path, first_offset: int) -> None:
        self.writer = writer
        self.path = path
        self.first_offset = first_offset
        self.next_offset = first_offset
        self.records = 0

    def write(self, columns: Columns) -> None:
        """Append records."""
        self.writer.write(columns)
        self.records += columns.count
        self.next_offset = columns.offsets[columns.count - 1] + 1


class RecordCopy:
    """Writes what a consumer reads, and keeps the manifest's partitions in step with finished files."""

    def __init__(
        self,
        folder: BackupFolder,
        manifest: Manifest,
        consumer: Consumer[Any, Any],
        run_ms: int,
        save_seconds: float,
        *,
        is_stopping: Callable[[], bool],
        say: Callable[[str], None],
        show: Callable[[CopyReport], None],
        now: Callable[[], float],
    ) -> None:
        self._folder = folder
        self._manifest = manifest
        self._consumer = consumer
        self._run_ms = run_ms
        self._save_seconds = save_seconds
        self._is_stopping = is_stopping
        self._say, self._show, self._now = say, show, now
        self._patience = consumer.config.default_api_timeout_ms / 1000
        self._progress = CopyProgress("backed up", now())
        self._saved_at = now()
        self._open: dict[TopicPartition, OpenSegment] = {}
        self._positions: dict[TopicPartition, int] = {}

    @property
    def records(self) -> int:
        """The number of copied records."""
        return self._progress.records

    def copy(self, spans: Mapping[TopicPartition, Span]) -> None:
        """Copy the records of these ranges; return early if the run is stopped."""
        todo = [tp for tp, span in spans.items() if span.start < span.end]
        self._positions = {tp: spans[tp].start for tp in todo}
        for first in range(0, len(todo), PARTITIONS_AT_ONCE):
            self._copy_window({tp: spans[tp] for tp in todo[first : first + PARTITIONS_AT_ONCE]}, spans)
            if self._is_stopping():
                return
        for tp, span in spans.items():
            self._partition(tp).end = span.end

    def _copy_window(self, window: Mapping[TopicPartition, Span], spans: Mapping[TopicPartition, Span]) -> None:
        self._consumer.assign(list(window))
        for tp, span in window.items():
            self._consumer.seek(tp, span.start)
        self._consumer.bound({tp: span.end for tp, span in window.items()})
        try:
            while not self._is_stopping() and any(self._positions[tp] < span.end for tp, span in window.items()):
                self._copy_some(window)
                self._show(self._progress.report(self._count_remaining(spans), self._now()))
                if self._now() - self._saved_at >= self._save_seconds:
                    self._finish_segments()
                    self._save()
        finally:
            self._finish_segments()
            self._save()

    def _copy_some(self, window: Mapping[TopicPartition, Span]) -> None:
        """Write the records of one poll. Raises KafkaTimeoutError if none arrives for `default.api.timeout.ms`."""
        deadline = self._now() + self._patience
        while not self._is_stopping():
            try:
                chunks = self._consumer.poll_columns(POLL_SECONDS, include_headers=True)
            except OffsetOutOfRangeError:
                self._skip_deleted(window)
                return
            for tp, columns in chunks:
                self._write(tp, columns)
            positions = {tp: self._consumer.position(tp) for tp in window}
            has_moved = any(self._positions[tp] != position for tp, position in positions.items())
            self._positions |= positions
            if has_moved:
                return
            if self._now() >= deadline:
                tp = next(tp for tp, span in window.items() if self._positions[tp] < span.end)
                raise KafkaTimeoutError(
                    f"no more records of {tp} received at offset {self._positions[tp]} within {self._patience:g} s "
                    "(default.api.timeout.ms); the backup continues there when it is run again"
                )

    def _write(self, tp: TopicPartition, columns: Columns) -> None:
        if not columns.count:
            return
        segment = self._open.get(tp)
        if segment is None:
            first = columns.offsets[0]
            kind = self._manifest.segment_format
            path = self._folder.create_segment_path(tp.topic, tp.partition, first, self._run_ms, kind)
            segment = self._open[tp] = OpenSegment(open_writer(kind, path, *tp), path, first)
        try:
            segment.write(columns)
        except BaseException:  # such as a full disk: the file may end within a batch
            self._discard_segment(tp)
            raise
        self._progress.add(columns.count, self._now())
        if segment.writer.size_bytes >= SEGMENT_BYTES:
            self._finish_segment(tp)

    def _finish_segments(self) -> None:
        for tp in list(self._open):
            self._finish_segment(tp)

    def _finish_segment(self, tp: TopicPartition) -> None:
        segment = self._open.pop(tp)
        segment.writer.close()
        partition = self._partition(tp)
        partition.segments.append(
            self._folder.describe_segment(segment.path, segment.first_offset, segment.next_offset, segment.records)
        )
        partition.end = segment.next_offset

    def _discard_segment(self, tp: TopicPartition) -> None:
        """Forget an open file. The next run reads its records again."""
        segment = self._open.pop(tp)
        with suppress(Exception):  # the caller raises the first one
            segment.writer.close()
        segment.path.unlink(missing_ok=True)

    def _save(self) -> None:
        self._folder.write_progress(self._manifest)
        self._saved_at = self._now()

    def _skip_deleted(self, window: Mapping[TopicPartition, Span]) -> None:
        """Continue at the log's start in partitions whose next records retention has deleted."""
        starts = self._consumer.beginning_offsets(list(window))
        for tp, span in window.items():
            position = self._consumer.position(tp)
            if position < starts[tp]:
                self._say(
                    f"{min(starts[tp], span.end) - position} offsets of {tp} were deleted in the cluster while it was "
                    "backed up"
                )
                self._positions[tp] = min(starts[tp], span.end)
                self._consumer.seek(tp, self._positions[tp])

    def _count_remaining(self, spans: Mapping[TopicPartition, Span]) -> int:
        return sum(spans[tp].end - position for tp, position in self._positions.items())

    def _partition(self, tp: TopicPartition) -> PartitionBackup:
        return self._manifest.topics[tp.topic].partitions[tp.partition]
