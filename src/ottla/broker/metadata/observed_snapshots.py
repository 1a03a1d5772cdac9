"""Snapshots that an observer writes of its metadata image, as each of Kafka's brokers does (KIP-630).

    bytes replayed, or an interval ──► snapshot written by a disk thread ──► new segment ──► old snapshots and log deleted

A controller also sends its snapshots to other nodes. Those of an observer serve its own next start alone: it reads the newest one,
and then the end of the log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import NamedTuple

from ottla.broker.settings.config import BrokerConfig
from ottla.clock import Clock
from ottla.errors import CorruptRecordError, KafkaError
from ottla.storage.log import Log
from ottla.storage.state_log.snapshot import SnapshotId, find_snapshots, read_time, write_state
from ottla.storage.state_log.voter import Quorum

logger = logging.getLogger(__name__)
Work = Callable[[], None]
Submit = Callable[[Work, Callable[[BaseException | None], None]], None]
"""Runs the first callback on another thread, then the second one in the loop, with the error if there was one."""


class SnapshotRules(NamedTuple):
    """The conditions for writing and deleting snapshots; Kafka's settings and defaults."""

    max_bytes: int = 20_971_520
    """`metadata.log.max.record.bytes.between.snapshots`."""
    max_interval_ms: int = 3_600_000
    """`metadata.log.max.snapshot.interval.ms`; 0 disables it."""
    retention_bytes: int = 104_857_600
    """`metadata.max.retention.bytes`, of log and snapshots together; negative for no limit."""
    retention_ms: int = 604_800_000
    """`metadata.max.retention.ms`, since the last record in a snapshot; negative for no limit."""
    small_bytes: int | None = None
    """A snapshot is also written when the log has this many bytes, and `GROWTH` times the size of the last snapshot; None for no such limit."""
    kept: int | None = None
    """The number of snapshots that are kept at most; None for no limit."""


KAFKAS = SnapshotRules()
GROWTH = 2
SMALL_BYTES = 256 * 1024
"""The log of the only node up to this size needs no snapshot, because it is read quickly at a start."""
KEPT_ALONE = 2
"""Two snapshots, and the log from the older one on: if the newer one is damaged, the older one and the log give the same state."""


def snapshot_rules(config: BrokerConfig) -> SnapshotRules:
    """Return the rules by the node's settings. The only node of a cluster keeps its log small: a start reads all of it."""
    small_bytes, kept = (SMALL_BYTES, KEPT_ALONE) if config.is_alone else (None, None)
    return SnapshotRules(
        config.metadata_log_max_record_bytes_between_snapshots,
        config.metadata_log_max_snapshot_interval_ms,
        config.metadata_max_retention_bytes,
        config.metadata_max_retention_ms,
        small_bytes,
        kept,
    )


def run_without_loop(work: Work, done: Callable[[BaseException | None], None]) -> None:
    """Run both callbacks now, without a loop."""
    try:
        work()
    except Exception as error:
        done(error)
    else:
        done(None)


class ObservedSnapshots:
    """Decides when the next snapshot is written, writes it, and deletes old ones."""

    def __init__(self, log: Log, rules: SnapshotRules, clock: Clock, submit: Submit) -> None:
        """`submit` runs the writing on a disk thread, and what follows in the loop."""
        self._submit = submit
        self._log = log
        self._rules = rules
        self._clock = clock
        self._writing = False
        self._last_bytes = 0
        """The size of the last snapshot."""
        self.restart_intervals()

    def restart_intervals(self) -> None:
        """Reset the counters, after a snapshot was written or read."""
        self._bytes = 0
        self._since = self._clock.monotonic()

    def count_replayed(self, size_bytes: int) -> None:
        """Count the bytes of a batch that was replayed, including its header."""
        self._bytes += size_bytes

    @property
    def is_due(self) -> bool:
        """True if it is time for a snapshot, and none is being written."""
        span, most = self._clock.monotonic() - self._since, self._rules.max_interval_ms / 1000
        return not self._writing and (self._bytes >= self._max_bytes or 0 < most <= span)

    @property
    def _max_bytes(self) -> int:
        if self._rules.small_bytes is None:
            return self._rules.max_bytes
        return min(self._rules.max_bytes, max(self._rules.small_bytes, GROWTH * self._last_bytes))

    def write(self, snapshot: SnapshotId, values: Iterable[bytes], time_ms: int, quorum: Quorum) -> None:
        """Write a snapshot; `values` are consumed on the disk thread."""
        self.restart_intervals()
        self._writing = True
        directory = self._log.directory

        def work() -> None:
            self._last_bytes = write_state(directory, snapshot, values, time_ms, quorum, sync=True)

        self._submit(work, lambda error: self._handle_written(snapshot, error))

    def _handle_written(self, snapshot: SnapshotId, error: BaseException | None) -> None:
        self._writing = False
        try:
            if error is not None:
                raise error
            now_ms = self._clock.wall_ms()
            self._log.roll(now_ms)
            self.delete_old(now_ms)
        except (OSError, KafkaError, CorruptRecordError) as problem:
            logger.error(
                "cannot write the snapshot %s in %s, or delete what is too old: %s; nothing is lost by it, a start has more "
                "of the log to read",
                snapshot.file_name, self._log.directory, problem,
            )  # fmt: skip

    def delete_old(self, now_ms: int) -> None:
        """Delete the oldest snapshots, and the log before the next one, while a limit is exceeded."""
        directory = self._log.directory
        found = find_snapshots(directory)
        surplus = 0 if self._rules.kept is None else len(found) - self._rules.kept
        for number, (oldest, following) in enumerate(pairwise(reversed(found))):
            if not (number < surplus or self._is_much() or self._is_old(oldest, now_ms)):
                return
            self._log.advance_start(following.offset)
            self._log.retain(now_ms)
            (directory / oldest.file_name).unlink()

    def _is_much(self) -> bool:
        if self._rules.retention_bytes < 0:
            return False
        directory = self._log.directory
        kept = sum((directory / each.file_name).stat().st_size for each in find_snapshots(directory))
        return self._log.size_bytes + kept > self._rules.retention_bytes

    def _is_old(self, snapshot: SnapshotId, now_ms: int) -> bool:
        if self._rules.retention_ms < 0:
            return False
        return now_ms - read_time(self._log.directory, snapshot) > self._rules.retention_ms
