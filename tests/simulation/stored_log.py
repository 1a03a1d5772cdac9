"""Storage's own log instead of the model's, on a disk that separates flushed and unflushed bytes.

A batch has one record with a number as its value. The producer is idempotent, and its sequence is that number.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ottla.coordination.replication.epochs import Starts
from ottla.records.batch import BatchHeader, iter_headers
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from tests.simulation.world import World
from tests.storage.batches import bytes_of
from tests.storage.faulty_disk import FaultyDisk
from tests.storage.producing import produced

PRODUCER = 7


class StoredLog:
    """A broker's copy; what is acknowledged of it is the machines' matter."""

    def __init__(self, folder: Path, disk: FaultyDisk, world: World) -> None:
        self.folder, self.disk, self.world = folder, disk, world
        self.config = LogConfig(segment_bytes=world.chance.choice((300, 1200, 10_000)), index_interval_bytes=100)
        self.watermark = 0
        """The last stored value (`replication-offset-checkpoint`)."""
        self.cuts = 0
        """The number of times that its end may have been lost."""
        self.log = self._open(0)
        self._seen: list[tuple[int, int]] = []

    def _open(self, recovery_point: int) -> Log:
        now = self.world.wall_ms()
        return Log.open(
            self.folder, self.config, now_ms=now, recovery_point=recovery_point, committed=min(self.watermark, 1 << 40)
        )

    @property
    def batches(self) -> list[tuple[int, int]]:
        """The epoch and the value of each offset, as they are in the files."""
        while len(self._seen) < self.end:
            self._seen += [(header.leader_epoch, header.base_sequence) for header in self._headers(len(self._seen))]
        return self._seen

    def _headers(self, offset: int) -> Iterator[BatchHeader]:
        found = bytes_of(self.log, offset)
        assert found, f"offset {offset} cannot be read, and the log ends at {self.end}"
        for number, (_, header) in enumerate(iter_headers(found)):
            assert header.base_offset == offset + number
            yield header

    @property
    def starts(self) -> Starts:
        return self.log.epochs.entries

    @property
    def end(self) -> int:
        return self.log.end_offset

    def begin(self, epoch: int) -> None:
        """Start an epoch for the following appends."""
        self.log.epochs.assign(epoch, self.end)

    def begin_to_follow(self) -> None:
        """Truncate the torn end: its leader's log does not contain it, nor epochs without batches."""
        self._is_cut(self.log.truncate_torn(now_ms=self.world.wall_ms()))

    def append(self, epoch: int, value: int) -> int:
        """Append the value of a producer, maybe a retry; return its offset."""
        data = produced(PRODUCER, value, timestamp=self.world.wall_ms())
        return self.log.append(bytearray(data), leader_epoch=epoch, now_ms=self.world.wall_ms()).base_offset

    def read(self, offset: int, most: int) -> bytes:
        """So many batches, as they are."""
        found = bytes_of(self.log, offset) if offset < self.end else b""
        ends = [position + header.size_bytes for position, header in iter_headers(found)][:most]
        return found[: ends[-1]] if ends else b""

    def copy(self, batches: bytes, epoch: int) -> None:
        """Append the batches of a leader of this epoch."""
        self.log.append_as_is(batches, leader_epoch=epoch, now_ms=self.world.wall_ms())

    def truncate(self, end: int) -> None:
        self._is_cut(self.log.truncate_to(end, now_ms=self.world.wall_ms()))

    def _is_cut(self, end: int) -> None:
        self.cuts += 1
        del self._seen[end:]
        self.watermark = min(self.watermark, end)

    def flush(self) -> None:
        self.log.flush()

    def crash(self, *, loses: bool) -> None:
        """The process stops; with `loses` the machine too, and unflushed data are lost. The rest is opened again."""
        flushed = self.log.recovery_point
        self.log.release()
        if loses:
            self.disk.lose_power()
        self.cuts += 1
        self._seen = []
        self.log = self._open(flushed)
        assert self.end >= flushed, f"flushed up to {flushed}, and {self.end} are left"
        self.watermark = min(self.watermark, self.end)


def folder_of(root: Path, id_: int) -> Path:
    folder = root / f"broker-{id_}" / "t-0"
    os.makedirs(folder, exist_ok=True)
    return folder
