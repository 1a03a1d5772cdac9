"""The directories of partitions, and the number of partitions in each."""

from __future__ import annotations

from typing import Any

from ottla.model import TopicPartition
from ottla.storage.directory.data_directories import PartitionDirectories

ONE: Any = "one"
OTHER: Any = "other"
A, B = TopicPartition("a", 0), TopicPartition("b", 0)


def test_each_directory_knows_how_many_it_has() -> None:
    homes = PartitionDirectories()
    homes.add(A, ONE)
    homes.add(A, OTHER)
    homes.add(B, ONE)
    assert (homes.find_directories(A), homes.counts[ONE], homes.counts[OTHER]) == ((ONE, OTHER), 2, 1)
    homes.put(A, OTHER)
    assert (homes.find_directories(A), homes.counts[ONE], homes.counts[OTHER]) == ((OTHER,), 1, 1)
    assert (homes.partitions_in(ONE), homes.partitions_in(OTHER)) == ([B], [A])


def test_an_unassigned_partition_is_counted_nowhere() -> None:
    homes = PartitionDirectories()
    homes.add(A, ONE)
    homes.put(A)
    homes.put(B)
    assert (homes.find_directories(A), homes.find_directories(B), homes.counts[ONE]) == ((), (), 0)
