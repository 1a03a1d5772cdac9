"""A log of one value to a batch, on a disk that may lose what was not forced to it."""

from __future__ import annotations


class ReplicaLog:
    """Batches, where each epoch began, and how much of both is on the disk."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, int]] = []
        """The epoch and the value of each offset."""
        self.starts: list[tuple[int, int]] = []
        self.flushed = 0
        self.watermark = 0
        """As it was written down last (`replication-offset-checkpoint`)."""
        self.cuts = 0
        """How often something may have gone from its end."""

    @property
    def end(self) -> int:
        return len(self.batches)

    def begin(self, epoch: int) -> None:
        """What is appended from now on is of this epoch."""
        if not self.starts or self.starts[-1][0] < epoch:
            self.starts = [start for start in self.starts if start[1] < self.end]
            self.starts.append((epoch, self.end))

    def begin_to_follow(self) -> None:
        """An epoch that was begun here and has no batch is in nobody's log."""
        self.truncate(self.end)

    def append(self, epoch: int, value: int) -> int:
        self.begin(epoch)
        self.batches.append((epoch, value))
        return self.end - 1

    def read(self, offset: int, most: int) -> tuple[tuple[int, int], ...]:
        """So many batches."""
        return tuple(self.batches[offset : offset + most])

    def copy(self, batches: tuple[tuple[int, int], ...], epoch: int) -> None:
        """What a leader of this epoch sent."""
        for own, value in batches:
            assert own <= epoch
            self.append(own, value)

    def flush(self) -> None:
        self.flushed = self.end

    def truncate(self, end: int) -> None:
        assert end <= self.end
        self.cuts += 1
        del self.batches[end:]
        self.starts = [start for start in self.starts if start[1] < end]
        self.flushed = min(self.flushed, end)
        self.watermark = min(self.watermark, end)

    def crash(self, *, loses: bool) -> None:
        """The process is gone; with `loses` the machine, too, and what was not flushed."""
        if loses:
            self.truncate(self.flushed)
