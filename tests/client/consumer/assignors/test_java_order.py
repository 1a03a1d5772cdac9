"""Java's iteration orders as its classes document them: hash codes, buckets, and the growth of a table."""

from __future__ import annotations

import pytest

from ottla.client.consumer.assignors.java_order import (
    HashedPartitions,
    count_buckets,
    find_bucket,
    partition_hash,
    sort_by_hash,
)
from ottla.model import TopicPartition


@pytest.mark.parametrize(
    ("topic", "partition", "hashed"),
    [("a", 0, 31 * 31 + 97), ("a", 1, 31 * 32 + 97), ("foo", 3, 31 * 34 + 101_574)],
)
def test_a_partition_s_hash_is_javas(topic: str, partition: int, hashed: int) -> None:
    assert partition_hash(TopicPartition(topic, partition)) == hashed


@pytest.mark.parametrize(
    ("hashed", "buckets", "where"), [(0, 16, 0), (17, 16, 1), (17, 32, 17), (0x10000, 16, 1), (0x30001, 16, 2)]
)
def test_the_upper_half_of_a_hash_affects_the_bucket(hashed: int, buckets: int, where: int) -> None:
    assert find_bucket(hashed, buckets) == where


def test_a_map_grows_when_it_is_more_than_three_quarters_full_and_never_shrinks() -> None:
    assert [count_buckets(count) for count in (0, 12, 13, 24, 25)] == [16, 16, 32, 32, 64]
    assert count_buckets(1, 64) == 64


def test_keys_are_ordered_by_bucket_and_then_by_insertion() -> None:
    assert sort_by_hash(["q", "b", "a"]) == ["q", "a", "b"]  # 113 and 97 share a bucket of 16
    assert sort_by_hash(["a", "q", "b"]) == ["a", "q", "b"]


def test_a_set_pops_the_first_element_of_its_first_bucket() -> None:
    held = HashedPartitions()
    for partition in (5, 1):
        held.add(TopicPartition("a", partition))  # hashes 1213 and 1089: buckets 13 and 1
    assert (len(held), held.first()) == (2, TopicPartition("a", 1))
    held.remove(TopicPartition("a", 1))
    assert held.first() == TopicPartition("a", 5)
