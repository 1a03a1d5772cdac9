"""Snapshots of a machine's state, so that its log need not grow for ever, nor a start read all of it.

    write snapshot ──► begin a new segment ──► delete what only older snapshots need

Two snapshots are kept, and the log from the older one on: where the newer one is broken, the older one and the log
make the same state. A crash between any two steps leaves files that the next snapshot clears away.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from ottla.errors import CorruptRecordError, ErrorCode, KafkaError
from ottla.storage.log import Log
from ottla.storage.state_log.snapshot import EMPTY, SnapshotId, State, find_snapshots, read_state, write_state
from ottla.storage.state_log.voter import Voter

logger = logging.getLogger(__name__)

KEPT = 2
SMALL_BYTES = 256 * 1024
"""A log up to this size is read at a start in no time."""
GROWTH = 2
"""A log that is so many times as large as the state that it makes is worth a snapshot."""


class Snapshots:
    """The snapshots beside one log."""

    def __init__(self, max_bytes: int, voter: Voter, *, durable: bool) -> None:
        """At most `max_bytes` of records come to lie behind a snapshot; `voter` keeps the log."""
        self._max_bytes = max_bytes
        self._voter = voter
        self._durable = durable
        self._bytes_since = 0
        self._state_bytes = 0

    def load(self, log: Log, now_ms: int) -> tuple[list[bytes], int]:
        """The values of the newest whole snapshot, and the offset from which the log goes on."""
        broken = []
        found = [each for each in find_snapshots(log.directory) if each.offset >= log.start_offset]
        for number, snapshot in enumerate(found):
            try:
                state = read_state(log.directory, snapshot)
            except (CorruptRecordError, OSError) as error:
                logger.error("%s; %s", error, in_its_place(log, found[number + 1 :]))
                broken.append(snapshot.file_name)
                continue
            self._state_bytes = sum(map(len, state.values))
            self._ensure_voter(log, snapshot, state)
            if snapshot.offset > log.end_offset:
                # What the log lost is in the snapshot.
                log.truncate_fully_and_start_at(snapshot.offset, now_ms=now_ms)
            self._bytes_since = bytes_from(log, snapshot.offset)
            return state.values, snapshot.offset
        if log.start_offset:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"the state in {log.directory} cannot be read: its log begins at offset {log.start_offset}, and "
                f"what was before is in no whole snapshot ({', '.join(broken) or 'there is none'}): restore a backup",
            )
        self._bytes_since = bytes_from(log, 0)
        self._ensure_voter(log, EMPTY, State([], now_ms))
        return [], 0

    def appended(self, size_bytes: int) -> None:
        """Count what the log has grown by."""
        self._bytes_since += size_bytes

    @property
    def due(self) -> bool:
        """Whether it is time for another."""
        enough = max(SMALL_BYTES, GROWTH * self._state_bytes)
        return self._bytes_since >= min(self._max_bytes, enough)

    def write(self, log: Log, values: Iterable[bytes], now_ms: int) -> None:
        """Write a snapshot of the state at the log's end; where that fails it is tried again when the log has grown."""
        self._bytes_since = 0
        try:
            snapshot = SnapshotId(log.end_offset, max(log.epochs.latest(), 0))
            self._state_bytes = write_state(log.directory, snapshot, values, now_ms, self._voter, sync=self._durable)
            log.roll(now_ms)
            self._forget_old(log, now_ms)
        except (OSError, KafkaError, CorruptRecordError) as error:
            logger.error(
                "cannot write the snapshot of the metadata at offset %d in %s, or delete what it replaces: %s; nothing "
                "is lost by it, a start has more of the log to read, and it is tried again when the log has grown",
                log.end_offset, log.directory, error,
            )  # fmt: skip

    def _ensure_voter(self, log: Log, snapshot: SnapshotId, state: State) -> None:
        """Have the newest snapshot say who keeps the log: without that, Kafka opens it with fixed voters only."""
        if state.has_voters:
            return
        try:
            write_state(log.directory, snapshot, state.values, state.time_ms, self._voter, sync=self._durable)
        except OSError as error:
            logger.error("cannot write down in %s who keeps the metadata: %s", log.directory, error)

    def _forget_old(self, log: Log, now_ms: int) -> None:
        present = find_snapshots(log.directory)
        if len(present) < KEPT:
            return
        log.advance_start(present[KEPT - 1].offset)
        log.retain(now_ms)
        for old in present[KEPT:]:
            (log.directory / old.file_name).unlink()


def in_its_place(log: Log, older: Sequence[SnapshotId]) -> str:
    """What is read instead of a snapshot that is broken."""
    if older:
        return "the snapshot before it is read, and more of the log"
    return "there is none before it" if log.start_offset else "the log is read from its beginning"


def bytes_from(log: Log, offset: int) -> int:
    """Bytes of the segments from `offset` on: a snapshot begins one."""
    return sum(segment.size for segment, base in zip(log.segments, log.bases, strict=True) if base >= offset)
