"""The leader epochs of a partition with their start offsets: Kafka's `leader-epoch-checkpoint` (KIP-101)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from ottla.storage.files.checkpoint import format_rows, read_numbers, write_rows
from ottla.storage.files.durable import write_file
from ottla.storage.files.storage_error import storage_error

FILE_NAME = "leader-epoch-checkpoint"
NO_EPOCH = -1
Entries = list[tuple[int, int]]
LOG = logging.getLogger(__name__)


class LeaderEpochs:
    """Epochs and their first offsets, both increasing. The file is read at the first use.

    The file is written by a flush. Entries that a crash loses are above the recovery point, and a start reads them again from the
    headers of the batches there. If the file contradicts the batches, the epochs of the batches are used.
    """

    __slots__ = ("_entries", "_path", "_saved", "_true")

    def __init__(self, directory: Path, true: Callable[[Entries], Entries] = lambda entries: entries) -> None:
        """Create an empty cache of the file. `true` is a function from the file's entries to those of the batches. It raises OSError if the batches cannot be read."""
        self._path = directory / FILE_NAME
        self._true = true
        self._entries: Entries | None = None
        self._saved: Entries | None = None

    @property
    def entries(self) -> Entries:
        """Pairs of an epoch and its first offset. Raises KafkaError(KAFKA_STORAGE_ERROR) if they cannot be read."""
        try:
            return self.load()
        except OSError as error:
            raise storage_error(f"cannot read {self._path}", error) from error

    def load(self, *, all_is_read: bool = False) -> Entries:
        """Return `entries`. Raises OSError if they cannot be read.

        If there is no file, the epochs are read from the batches. With `all_is_read` they are not: recovery is about to read every
        batch, and adds the epochs itself.
        """
        if self._entries is None:
            saved = self._load()
            self._entries = []  # the batches are read without comparing their epochs
            try:
                true = [] if saved is None and all_is_read else self._true(saved or [])
            except BaseException:
                self._entries = None
                raise
            if saved and true != saved:
                LOG.warning("%s says %s, the batches say %s: they are believed", self._path, saved, true)
            self._entries, self._saved = true, saved
        return self._entries

    def last_entry(self) -> tuple[int, int]:
        """Return the latest epoch and its first offset; -1 and 0 if there is no epoch."""
        entries = self.entries
        return entries[-1] if entries else (NO_EPOCH, 0)

    def latest(self) -> int:
        """Return the latest epoch; -1 if there is none."""
        return self.last_entry()[0]

    def assign(self, epoch: int, offset: int) -> None:
        """Record that batches from `offset` on have `epoch`. Nothing changes if it is the latest epoch.

        Epochs do not decrease. If `epoch` is lower than the latest one, the latest came from a damaged header of the last batch and is
        removed. Epoch 0 is ignored then: old versions of Ottla wrote 0 for every epoch.
        """
        known = self._entries
        if known and epoch == known[-1][0]:
            return  # as with nearly every append
        latest = self.latest()
        if epoch > latest or 0 < epoch < latest:
            entries = [entry for entry in self.entries if entry[1] < offset and entry[0] <= epoch]
            self._entries = entries if entries and entries[-1][0] == epoch else [*entries, (epoch, offset)]

    def truncate_from(self, end_offset: int) -> None:
        """Remove the epochs that start at or after the end of a truncated log."""
        self._entries = [entry for entry in self.entries if entry[1] < end_offset]

    def flush(self, end_offset: int, *, sync: bool = True) -> None:
        """Write the file if the entries have changed, and force it to the disk if `sync`. Another thread may call `assign` meanwhile.

        The first file is not written while all epochs start at or after `end_offset`, because then no batch has any of them.
        """
        entries = self._entries
        if entries is not None and entries != self._saved:
            if self._saved is None and all(offset >= end_offset for _, offset in entries):
                return
            if self._saved is None and not sync:
                # A crash may leave a part of the file; the next start compares it with the batches.
                write_file(self._path, format_rows(entries))
            else:
                write_rows(self._path, entries, sync=sync)
            self._saved = entries

    def _load(self) -> Entries | None:
        try:
            return [(epoch, offset) for epoch, offset in read_numbers(self._path, 2)]
        except FileNotFoundError:
            return None
        except ValueError as error:
            LOG.warning("%s is damaged (%s): the leader epochs are found in the batches again", self._path, error)
            return []
