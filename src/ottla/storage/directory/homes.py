"""In which of several directories each partition is, and how many each of them has. Kept in step here, as they are asked for each new partition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.model import TopicPartition

if TYPE_CHECKING:
    from ottla.storage.directory.data_directory import DataDirectory


class Homes:
    """Of a partition more than one, as long as nobody has decided which counts."""

    def __init__(self) -> None:
        self.counts: Counter[DataDirectory] = Counter()
        """How many partitions each directory has."""
        self._homes: dict[TopicPartition, tuple[DataDirectory, ...]] = {}

    def of(self, partition: TopicPartition) -> Sequence[DataDirectory]:
        """Empty where the partition is nowhere yet."""
        return self._homes.get(partition, ())

    def add(self, partition: TopicPartition, home: DataDirectory) -> None:
        """It is there as well."""
        self.put(partition, *self.of(partition), home)

    def put(self, partition: TopicPartition, *homes: DataDirectory) -> None:
        """It is there and nowhere else; nowhere at all without any."""
        self.counts.subtract(self._homes.pop(partition, ()))
        if homes:
            self._homes[partition] = homes
            self.counts.update(homes)

    def inside(self, directory: DataDirectory) -> list[TopicPartition]:
        """The partitions that have a copy there, in no order."""
        return [partition for partition, homes in self._homes.items() if directory in homes]
