"""Snapshots of metadata that others decide, made here as each of Kafka's brokers makes its own (KIP-630).

    so many bytes replayed, or so long ago ──► written beside the loop ──► a new segment ──► what is too old goes

Unlike a controller's they are for this broker's next start alone: it reads the newest, and then the end of the log.
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
Beside = Callable[[Work, Callable[[BaseException | None], None]], None]
"""Does the first away from the loop, then has the loop do the second, which is told what went wrong."""


class SnapshotRules(NamedTuple):
    """When there is a snapshot, and what is deleted for it; Kafka's settings and defaults."""

    max_bytes: int = 20_971_520
    """`metadata.log.max.record.bytes.between.snapshots`."""
    max_interval_ms: int = 3_600_000
    """`metadata.log.max.snapshot.interval.ms`; 0 is never."""
    retention_bytes: int = 104_857_600
    """`metadata.max.retention.bytes`, of log and snapshots together; negative is without end."""
    retention_ms: int = 604_800_000
    """`metadata.max.retention.ms`, since the last record in a snapshot; negative is without end."""


KAFKAS = SnapshotRules()


def snapshot_rules(config: BrokerConfig) -> SnapshotRules:
    """As the node's settings have them."""
    return SnapshotRules(
        config.metadata_log_max_record_bytes_between_snapshots,
        config.metadata_log_max_snapshot_interval_ms,
        config.metadata_max_retention_bytes,
        config.metadata_max_retention_ms,
    )


def at_once(work: Work, done: Callable[[BaseException | None], None]) -> None:
    """Where there is no loop to be kept waiting."""
    try:
        work()
    except Exception as error:
        done(error)
    else:
        done(None)


class ObservedSnapshots:
    """When to write the next one, and what has gone by then."""

    def __init__(self, log: Log, rules: SnapshotRules, clock: Clock) -> None:
        self.beside: Beside = at_once
        self._log = log
        self._rules = rules
        self._clock = clock
        self._writing = False
        self.begin_anew()

    def begin_anew(self) -> None:
        """Count from now on: one was written, or read."""
        self._bytes = 0
        self._since = self._clock.monotonic()

    def replayed(self, size_bytes: int) -> None:
        """Count what became state: a batch with its header, as it lies in the log."""
        self._bytes += size_bytes

    @property
    def due(self) -> bool:
        """Whether it is time for one; there is one under way at a time."""
        span, most = self._clock.monotonic() - self._since, self._rules.max_interval_ms / 1000
        return not self._writing and (self._bytes >= self._rules.max_bytes or 0 < most <= span)

    def write(self, snapshot: SnapshotId, values: Iterable[bytes], time_ms: int, quorum: Quorum) -> None:
        """Write one; `values` are taken away from the loop."""
        self.begin_anew()
        self._writing = True
        directory = self._log.directory

        def work() -> None:
            write_state(directory, snapshot, values, time_ms, quorum, sync=True)

        self.beside(work, lambda error: self._written(snapshot, error))

    def _written(self, snapshot: SnapshotId, error: BaseException | None) -> None:
        self._writing = False
        try:
            if error is not None:
                raise error
            now_ms = self._clock.wall_ms()
            self._log.roll(now_ms)
            self.clean(now_ms)
        except (OSError, KafkaError, CorruptRecordError) as problem:
            logger.error(
                "cannot write the snapshot %s in %s, or delete what is too old: %s; nothing is lost by it, a start has more "
                "of the log to read",
                snapshot.file_name, self._log.directory, problem,
            )  # fmt: skip

    def clean(self, now_ms: int) -> None:
        """Delete the oldest snapshots and the log below the next as long as there is too much, or they are too old."""
        directory = self._log.directory
        for oldest, following in pairwise(reversed(find_snapshots(directory))):
            if not (self._is_much() or self._is_old(oldest, now_ms)):
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
