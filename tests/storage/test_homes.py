"""Where partitions are, among several directories, and how many each has."""

from __future__ import annotations

from typing import Any

from ottla.model import TopicPartition
from ottla.storage.directory.data_directories import Homes

ONE: Any = "one"
OTHER: Any = "other"
A, B = TopicPartition("a", 0), TopicPartition("b", 0)


def test_each_directory_knows_how_many_it_has() -> None:
    homes = Homes()
    homes.add(A, ONE)
    homes.add(A, OTHER)
    homes.add(B, ONE)
    assert (homes.of(A), homes.counts[ONE], homes.counts[OTHER]) == ((ONE, OTHER), 2, 1)
    homes.put(A, OTHER)
    assert (homes.of(A), homes.counts[ONE], homes.counts[OTHER]) == ((OTHER,), 1, 1)
    assert (homes.inside(ONE), homes.inside(OTHER)) == ([B], [A])


def test_who_is_nowhere_counts_nowhere() -> None:
    homes = Homes()
    homes.add(A, ONE)
    homes.put(A)
    homes.put(B)
    assert (homes.of(A), homes.of(B), homes.counts[ONE]) == ((), (), 0)
