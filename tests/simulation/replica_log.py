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
        """The last stored value (`replication-offset-checkpoint`)."""
        self.cuts = 0
        """The number of times that its end may have been lost."""

    @property
    def end(self) -> int:
        return len(self.batches)

    def begin(self, epoch: int) -> None:
        """Start an epoch for the following appends."""
        if not self.starts or self.starts[-1][0] < epoch:
            self.starts = [start for start in self.starts if start[1] < self.end]
            self.starts.append((epoch, self.end))

    def begin_to_follow(self) -> None:
        """Drop an epoch that was started here and has no batch: no other log has it."""
        self.truncate(self.end)

    def append(self, epoch: int, value: int) -> int:
        self.begin(epoch)
        self.batches.append((epoch, value))
        return self.end - 1

    def read(self, offset: int, most: int) -> tuple[tuple[int, int], ...]:
        """So many batches."""
        return tuple(self.batches[offset : offset + most])

    def copy(self, batches: tuple[tuple[int, int], ...], epoch: int) -> None:
        """Append the batches of a leader of this epoch."""
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
        """The process stops; with `loses` the machine too, and unflushed data are lost."""
        if loses:
            self.truncate(self.flushed)
