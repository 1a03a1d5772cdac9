"""Derive producers and leader epochs from the batches of a partition, and compare them with the files next to the log.

    begin(segment) ──► add(batch) … ──► snapshots, aborted transactions, epochs

A file is written at a flush: a start finds in the batches what the file lacks above the recovery point. After damage, and where
compaction removed batches, the rest is incomplete: then only what contradicts an existing batch is a fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from ottla.errors import CorruptRecordError
from ottla.records.batch import BatchHeader
from ottla.records.end_marker import EndMarker, decode_end_marker
from ottla.storage.batches.walk import StoredBatch
from ottla.storage.files.regular_file import read_whole
from ottla.storage.inspection.fault import FileFault
from ottla.storage.inspection.state_files import ABORTED, ABORTED_REMEDY, EPOCHS_REMEDY, read_aborted, read_snapshot
from ottla.storage.producers.producer_entry import NONE, ProducerEntry
from ottla.storage.producers.producer_snapshot import SNAPSHOT_NAME, decode_snapshot, snapshot_path
from ottla.storage.producers.producer_state import AbortedTxn, ProducerStateManager
from ottla.storage.recovery.epoch_check import Led, drop_decreasing, group_by_epoch

SNAPSHOT_REMEDY = "delete the file while no broker runs: the next start finds the producers in the log"
Row = dict[str, Any]


class Replay:
    """The replay of a partition. All batches are added in order."""

    def __init__(self, folder: Path, flushed: int) -> None:
        """Prepare a replay. The files next to the log are complete below the offset `flushed`."""
        self.aborted: dict[int, list[AbortedTxn]] = {}
        """By the segment in which they ended."""
        self.faults: list[FileFault] = []
        """The faults of snapshots."""
        self._folder = folder
        self._flushed = flushed
        self._state = ProducerStateManager()
        self._sure = True
        """True if all batches were readable so far."""
        self._next_offset = -1
        self._base = 0
        self._led: list[Led] = []
        self._wrote: dict[int, int] = {}
        """The last records of each producer that are still there."""
        names = (path.name for path in folder.iterdir() if SNAPSHOT_NAME.fullmatch(path.name))
        self._due = sorted((int(name[:20]) for name in names), reverse=True)

    def begin_segment(self, base_offset: int) -> None:
        """Start a segment. Before the first one, the producers of its snapshot are loaded."""
        self.aborted[base_offset] = []
        self._base = base_offset
        if self._next_offset < 0:
            self._next_offset = base_offset
            self._due = [offset for offset in self._due if offset >= base_offset]  # Retention left the others.
            self._sure = base_offset == 0 or self._restore(base_offset)

    def record_lost_batch(self) -> None:
        """Record that a batch could not be read."""
        self._sure = False

    def add(self, batch: StoredBatch) -> None:
        """Add a complete batch at its position."""
        header = batch.header
        self._check_snapshots_at(header.base_offset)
        self._sure = self._sure and header.base_offset == self._next_offset
        self._next_offset = header.next_offset
        if header.producer_id >= 0:
            aborted = self._state.add(header, marker_of(batch), 0)
            if aborted is not None and self._wrote.get(header.producer_id, -1) >= aborted.first_offset:
                self.aborted[self._base].append(aborted)
            if header.count and not header.is_control:
                self._wrote[header.producer_id] = header.last_offset
        group_by_epoch(self._led, header)

    def check_snapshots(self, end_offset: int) -> None:
        """Hold the snapshots against the state that all batches up to `end_offset` made."""
        self._check_snapshots_at(end_offset)

    def missing_in(self, path: Path, base_offset: int) -> Iterator[FileFault]:
        """Report aborted transactions that a `.txnindex` lacks or describes differently. The file may not exist."""
        listed = {(row["producerId"], row["lastOffset"]): row for row in read_aborted(path)} if path.exists() else {}
        for each in self.aborted.get(base_offset, ()):
            row = listed.get((each.producer_id, each.last_offset))
            if row is None and each.last_offset < self._flushed:
                reason = f"the transaction of producer {each.producer_id} that was aborted at offset {each.last_offset} is missing"
                yield FileFault(path, f"{reason}; {ABORTED_REMEDY}", offset=each.first_offset)
            elif row is not None and self._sure:
                mine = (each.first_offset, each.last_stable_offset)
                said = (row["firstOffset"], row["lastStableOffset"])
                if mine != said:
                    reason = f"first and last stable offset of the aborted transaction are {mine[0]} and {mine[1]}, not {said[0]} and {said[1]}"
                    place = list(listed).index((each.producer_id, each.last_offset)) * ABORTED.size
                    yield FileFault(path, f"{reason}; {ABORTED_REMEDY}", place, each.first_offset, ABORTED.size)

    def epoch_faults(self, path: Path, rows: list[Row]) -> Iterator[FileFault]:
        """Yield the entries of a `leader-epoch-checkpoint` that differ from the batches."""
        listed = [(row["epoch"], row["startOffset"]) for row in rows]
        for (epoch, start), (later, following) in pairwise(listed):
            if not (epoch < later and start < following):
                yield FileFault(
                    path,
                    f"epoch {later} from offset {following} on follows epoch {epoch} from {start} on; {EPOCHS_REMEDY}",
                )
                return
        for led in drop_decreasing(self._led):
            fault = find_epoch_contradiction(led, listed, self._flushed)
            if fault:
                yield FileFault(path, f"{fault}; {EPOCHS_REMEDY}", offset=led.first_offset)
                return

    def _restore(self, offset: int) -> bool:
        try:
            self._state.restore(decode_snapshot(read_whole(snapshot_path(self._folder, offset)), 0))
        except (OSError, CorruptRecordError):
            return False
        return True

    def _check_snapshots_at(self, offset: int) -> None:
        while self._due and self._due[-1] <= offset:
            self._sure = self._sure and self._due[-1] <= self._next_offset
            path = snapshot_path(self._folder, self._due.pop())
            try:
                rows = read_snapshot(path)
            except (OSError, ValueError):
                continue  # reported elsewhere
            self.faults += self._snapshot_faults(path, rows)

    def _snapshot_faults(self, path: Path, rows: list[Row]) -> Iterator[FileFault]:
        listed = {row["producerId"]: row for row in rows}
        for id_, row in listed.items():
            entry = self._state.entries.get(id_)
            fault = "" if entry is None else find_contradiction(entry, row, sure=self._sure)
            if fault:
                yield FileFault(path, f"producer {id_} {fault}; {SNAPSHOT_REMEDY}", offset=row["lastOffset"])
        for began, id_ in self._state.open.items() if self._sure else ():
            if id_ not in listed:
                yield FileFault(
                    path, f"the open transaction of producer {id_} is missing; {SNAPSHOT_REMEDY}", offset=began
                )


def find_contradiction(entry: ProducerEntry, row: Row, *, sure: bool) -> str:
    """Return what a snapshot claims about a producer in contradiction to its batches; empty if they agree."""
    epoch, sequence, offset = row["producerEpoch"], row["lastSequence"], row["lastOffset"]
    behind = entry.last_offset > offset or entry.epoch > epoch
    if behind or (sure and (entry.epoch, entry.last_sequence, entry.last_offset) != (epoch, sequence, offset)):
        mine = f"epoch {entry.epoch}, sequence {entry.last_sequence}, offset {entry.last_offset}"
        return f"wrote last with {mine} by its batches, the snapshot has epoch {epoch}, sequence {sequence}, offset {offset}"
    began = max(row["currentTxnFirstOffset"], NONE)
    if sure and began != entry.transaction_start:
        return f"has a transaction open since offset {entry.transaction_start} by its batches, the snapshot has {began} (-1 is none)"
    return ""


def find_epoch_contradiction(led: Led, listed: list[tuple[int, int]], flushed: int) -> str:
    """Return what a list of leader epochs claims about some batches in contradiction to them; empty if they agree."""
    if led.epoch <= 0:
        return ""  # Machines once wrote 0, whatever the partition's was.
    over = [
        epoch
        for number, (epoch, start) in enumerate(listed)
        if start <= led.last_offset and not is_over(listed, number, led)
    ]
    if over == [led.epoch] and any(start <= led.first_offset for epoch, start in listed if epoch == led.epoch):
        return ""
    if led.epoch > max((epoch for epoch, _ in listed), default=-1) and led.first_offset >= flushed:
        return ""
    said = f"epoch {over[0]}" if len(over) == 1 else f"epochs {', '.join(map(str, over))}" if over else "no epoch"
    return f"the batches of offsets {led.first_offset} to {led.last_offset} are of leader epoch {led.epoch}, the file says {said}"


def is_over(listed: list[tuple[int, int]], number: int, led: Led) -> bool:
    """Return True if an epoch of the list ends before some batches."""
    return number + 1 < len(listed) and listed[number + 1][1] <= led.first_offset


def marker_of(batch: StoredBatch) -> EndMarker | None:
    """Return the end of a transaction, if the batch is one that can be read."""
    header: BatchHeader = batch.header
    if not header.is_control:
        return None
    try:
        return decode_end_marker(bytes(batch.data), 0, header)
    except CorruptRecordError:
        return None
