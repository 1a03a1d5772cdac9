"""Decide when a log writes snapshots of its producers: at the start of each segment, at a close, and in between.

Those in between limit what is read again after a crash: a restart continues from the latest snapshot that is not above the
recovery point. So the one below the recovery point is kept, and those after it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock

from ottla.storage.files.open_file import OpenFile, write_all
from ottla.storage.producers.producer_snapshot import encode_snapshot, snapshot_path, write_snapshot
from ottla.storage.producers.producer_state import ProducerStateManager

LOG = logging.getLogger(__name__)
FOUND_BYTES = 65_536
"""In a log that is so small the producers are found at once, so one without any needs no file that says so."""


class SnapshotKeeper:
    """The snapshots of one log, and the offset of the latest."""

    __slots__ = ("_between", "_cuts", "_lock", "directory", "latest")

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.latest = 0
        self._between: list[int] = []
        """Offsets of those that were written in this run and begin no segment."""
        self._cuts = 0
        """How often the log was cut: what was to be written before that is not true any more."""
        self._lock = Lock()

    def roll_back_to(self, offset: int) -> None:
        """Before a truncation removes the snapshots above `offset`: write none with a later state."""
        with self._lock:
            self._cuts += 1
        self.latest = min(self.latest, offset)
        self._between = [each for each in self._between if each <= offset]

    def write(self, offset: int, state: ProducerStateManager) -> None:
        """Write one, so that the producers need not be found in the batches before."""
        if offset > self.latest:
            try:
                write_snapshot(self.directory, offset, state.entries.values())
                self.latest = offset
            except OSError as error:
                self._not_written(offset, error)

    def write_last(self, offset: int, state: ProducerStateManager, log_bytes: int) -> None:
        """Write the last snapshot when the log is closed."""
        if state.entries or self.latest or log_bytes > FOUND_BYTES:
            self.write(offset, state)

    def prepare_snapshot(
        self, offset: int, recovery_point: int, state: ProducerStateManager
    ) -> Callable[[], None] | None:
        """Return a function that writes a snapshot at the log's end, in any thread, and deletes those that no restart will use.

        None if a restart would gain nothing, because nothing was forced to the disk since the latest.
        """
        if recovery_point <= self.latest:
            return None
        doomed = [each for each in self._between if each <= recovery_point][:-1]
        self._between = [*(each for each in self._between if each not in doomed), offset]
        # The folder may be another topic's when the thread comes to it.
        try:
            folder = OpenFile(self.directory, folder=True)
        except OSError as error:
            self._not_written(offset, error)
            return None
        data = encode_snapshot(state.entries.values())
        self.latest = offset
        cuts = self._cuts

        def keep() -> None:
            with self._lock:
                if cuts == self._cuts:
                    write()

        def write() -> None:
            try:
                write_in(folder, snapshot_path(Path(), offset), data)
                for each in doomed:
                    # One that a cut of the log overtook was never written.
                    with suppress(FileNotFoundError):
                        os.unlink(snapshot_path(Path(), each), dir_fd=folder.fileno())
            except OSError as error:
                if self.directory.exists():  # else the log is gone by now
                    self._not_written(offset, error)

        return keep

    def _not_written(self, offset: int, error: OSError) -> None:
        """Nothing is lost by it, so nothing else fails."""
        LOG.warning(
            "cannot write the snapshot of producers at offset %d in %s: %s; a restart has more of the log to read, "
            "and the next snapshot is tried at its time",
            offset, self.directory, error.strerror,
        )  # fmt: skip


def write_in(folder: OpenFile, name: Path, data: bytes) -> None:
    """Create a file in a folder, even if the folder was renamed. If that fails no file is left, which would look like damage."""
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK, 0o644, dir_fd=folder.fileno())
    try:
        write_all(fd, memoryview(data), 0)
    except OSError:
        os.unlink(name, dir_fd=folder.fileno())
        raise
    finally:
        os.close(fd)
