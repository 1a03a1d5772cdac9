"""Which leader wrote from which offset on: Kafka's `leader-epoch-checkpoint` of a partition (KIP-101)."""

from __future__ import annotations

import logging
from pathlib import Path

from ottla.storage.checkpoint import read_rows, write_rows

FILE_NAME = "leader-epoch-checkpoint"
NO_EPOCH = -1
LOG = logging.getLogger(__name__)


class LeaderEpochs:
    """Epochs and the offsets at which they began, both increasing; read when first asked for.

    The file catches up at a flush: what a crash takes with it is above the recovery point, and found again in the
    headers of the batches there.
    """

    __slots__ = ("_entries", "_path", "_saved")

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE_NAME
        self._entries: list[tuple[int, int]] | None = None
        self._saved: list[tuple[int, int]] | None = None

    @property
    def entries(self) -> list[tuple[int, int]]:
        """Pairs of epoch and its first offset."""
        if self._entries is None:
            self._entries = self._saved = self._load()
        return self._entries

    def latest(self) -> int:
        """The epoch that was assigned last, -1 before the first."""
        return self.entries[-1][0] if self.entries else NO_EPOCH

    def assign(self, epoch: int, offset: int) -> None:
        """Batches from `offset` on are of `epoch`; nothing happens if it is not newer than the latest."""
        if epoch > self.latest():
            self._entries = [*(entry for entry in self.entries if entry[1] < offset), (epoch, offset)]

    def truncate_from(self, end_offset: int) -> None:
        """Forget epochs that begin at or after the end of a log that was cut."""
        self._entries = [entry for entry in self.entries if entry[1] < end_offset]

    def flush(self, *, sync: bool = True) -> None:
        """Bring the file up to date and force it to the disk if `sync`; may run beside `assign`."""
        entries = self._entries
        if entries is not None and entries != self._saved:
            write_rows(self._path, entries, sync=sync)
            self._saved = entries

    def _load(self) -> list[tuple[int, int]]:
        try:
            return [(int(epoch), int(offset)) for epoch, offset in read_rows(self._path)]
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            LOG.warning("%s is not readable (%s): it begins anew with the next leader epoch", self._path, error)
            return []
