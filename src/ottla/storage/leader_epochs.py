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
    """Epochs and the offsets at which they began, both increasing; read when first asked for.

    The file catches up at a flush: what a crash takes with it is above the recovery point, and found again in the
    headers of the batches there. A file that contradicts the batches is not believed: they say the same.
    """

    __slots__ = ("_entries", "_path", "_saved", "_true")

    def __init__(self, directory: Path, true: Callable[[Entries], Entries] = lambda entries: entries) -> None:
        """`true` receives the entries of the file and returns those of the batches; OSError if the batches cannot be read."""
        self._path = directory / FILE_NAME
        self._true = true
        self._entries: Entries | None = None
        self._saved: Entries | None = None

    @property
    def entries(self) -> Entries:
        """Pairs of epoch and its first offset; KafkaError(KAFKA_STORAGE_ERROR) where the disk does not give them."""
        try:
            return self.load()
        except OSError as error:
            raise storage_error(f"cannot read {self._path}", error) from error

    def load(self, *, all_is_read: bool = False) -> Entries:
        """The same; OSError where the disk does not give them.

        Where there is no file the batches are asked, unless recovery is about to read all of them: then nothing was flushed.
        """
        if self._entries is None:
            saved = self._load()
            self._entries = []  # the batches are asked without epochs
            try:
                true = [] if saved is None and all_is_read else self._true(saved or [])
            except BaseException:
                self._entries = None
                raise
            if saved and true != saved:
                LOG.warning("%s says %s, the batches say %s: they are believed", self._path, saved, true)
            self._entries, self._saved = true, saved
        return self._entries

    def last(self) -> tuple[int, int]:
        """The epoch that was assigned last and where it began, -1 and 0 before the first."""
        entries = self.entries
        return entries[-1] if entries else (NO_EPOCH, 0)

    def latest(self) -> int:
        """The epoch that was assigned last, -1 before the first."""
        return self.last()[0]

    def assign(self, epoch: int, offset: int) -> None:
        """Record that batches from `offset` on have `epoch`. Nothing changes if it is the latest epoch.

        Epochs do not decrease. If this one is lower than the latest, the latest was in a single damaged batch at the log's end that was not
        detected before. Old versions of Ottla wrote 0, whatever the partition's epoch was.
        """
        known = self._entries
        if known and epoch == known[-1][0]:
            return  # as with nearly every append
        latest = self.latest()
        if epoch > latest or 0 < epoch < latest:
            entries = [entry for entry in self.entries if entry[1] < offset and entry[0] <= epoch]
            self._entries = entries if entries and entries[-1][0] == epoch else [*entries, (epoch, offset)]

    def truncate_from(self, end_offset: int) -> None:
        """Forget epochs that begin at or after the end of a log that was cut."""
        self._entries = [entry for entry in self.entries if entry[1] < end_offset]

    def flush(self, end_offset: int, *, sync: bool = True) -> None:
        """Bring the file up to date and force it to the disk if `sync`; another thread may call `assign` at the same time.

        If a log that ends at `end_offset` has no batch of the epochs, no first file is written: the next leader starts another epoch.
        """
        entries = self._entries
        if entries is not None and entries != self._saved:
            if self._saved is None and all(offset >= end_offset for _, offset in entries):
                return
            if self._saved is None and not sync:
                write_file(self._path, format_rows(entries))  # What a crash leaves of it is held against the batches.
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
