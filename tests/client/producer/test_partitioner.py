from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from ottla.client.producer.partitioner import ANY, StickyPartitioner, choose_any, choose_by_key, partitioner_for
from ottla.errors import ConfigError

KAFKAS = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}
"""The hashes of these keys in Java's client (org.apache.kafka.common.utils.Utils.murmur2, from its tests)."""


@pytest.mark.behaviour("P8")
@pytest.mark.parametrize("key", KAFKAS)
@pytest.mark.parametrize("partitions", [1, 6, 50])
def test_a_key_gets_the_same_partition_as_in_java(key: bytes, partitions: int) -> None:
    assert choose_by_key("t", key, None, partitions) == (KAFKAS[key] & 0x7FFFFFFF) % partitions


@pytest.mark.behaviour("P8")
def test_a_record_without_a_key_may_use_any_partition() -> None:
    assert choose_by_key("t", None, b"v", 6) == ANY


@pytest.mark.behaviour("P8")
def test_the_partitioner_can_ignore_keys() -> None:
    assert partitioner_for(None, ignore_keys=True) is choose_any
    assert choose_any("t", b"key", None, 6) == ANY


@pytest.mark.behaviour("P8")
def test_round_robin_distributes_the_records_of_each_topic_in_turn() -> None:
    choose = partitioner_for("round_robin", ignore_keys=False)
    assert [choose(topic, b"same", None, 3) for topic in "aabaa"] == [0, 1, 0, 2, 0]


@pytest.mark.behaviour("P8")
def test_a_custom_partitioner_function_chooses_the_partition() -> None:
    choose = partitioner_for(lambda topic, key, value, partitions: partitions - 1, ignore_keys=False)
    assert choose("t", b"k", b"v", 6) == 5


def test_an_unknown_partitioner_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"partitioner\.class = 'best': must be 'round_robin', a function"):
        partitioner_for("best", ignore_keys=False)


@pytest.mark.behaviour("P8")
def test_records_without_a_key_stick_to_one_partition_until_its_batch_is_full() -> None:
    sticky = StickyPartitioner(1000, Random(1))
    first = sticky.current_partition(50)
    for _ in range(9):
        sticky.count_append(100, 50)
        assert sticky.current_partition(50) == first
    assert sticky.partition_for_batch(50, full=True) != first


@pytest.mark.behaviour("P8")
def test_batches_sent_before_they_are_full_do_not_change_the_sticky_partition() -> None:
    sticky = StickyPartitioner(1000, Random(1))
    first = sticky.current_partition(50)
    for _ in range(9):
        sticky.count_append(100, 50)
        assert sticky.partition_for_batch(50, full=False) == first
    sticky.count_append(100, 50)
    assert sticky.partition_for_batch(50, full=False) != first


@pytest.mark.behaviour("P8")
def test_a_whole_batch_may_be_partitioned_first() -> None:
    assert 0 <= StickyPartitioner(1000, Random(1)).partition_for_batch(50, full=False) < 50


@pytest.mark.behaviour("P8")
def test_all_partitions_get_their_share() -> None:
    sticky = StickyPartitioner(1, Random(1))
    counts = Counter(sticky.partition_for_batch(6, full=True) for _ in range(6000))
    assert set(counts) == set(range(6))
    assert max(counts.values()) < 1.2 * min(counts.values())


@pytest.mark.behaviour("P8")
def test_partitions_with_long_queues_get_fewer_records() -> None:
    sticky = StickyPartitioner(1, Random(1))
    sticky.update_load([0, 1, 2], [0, 3, 1], 3)
    counts = Counter(sticky.partition_for_batch(3, full=True) for _ in range(7000))
    assert counts[0] / counts[1] == pytest.approx(4, rel=0.2)
    assert counts[2] / counts[1] == pytest.approx(3, rel=0.2)


@pytest.mark.behaviour("P8")
def test_a_partition_with_a_long_queue_gets_fewer_records_than_all_others() -> None:
    sticky = StickyPartitioner(1, Random(1))
    sticky.update_load([0, 1, 2], [0, 3, 0], 3)
    counts = Counter(sticky.partition_for_batch(3, full=True) for _ in range(9000))
    assert counts[0] / counts[1] == pytest.approx(4, rel=0.2)


def test_partitions_without_a_leader_get_no_records() -> None:
    sticky = StickyPartitioner(1, Random(1))
    sticky.update_load([0, 2], [0, 0], 3)
    assert {sticky.partition_for_batch(3, full=True) for _ in range(200)} == {0, 2}


def test_equal_queues_do_not_change_the_distribution() -> None:
    sticky = StickyPartitioner(1, Random(1))
    sticky.update_load([0, 2], [0, 0], 3)
    sticky.update_load([0, 1, 2], [4, 4, 4], 3)
    assert {sticky.partition_for_batch(3, full=True) for _ in range(200)} == {0, 1, 2}


def test_a_recreated_topic_with_fewer_partitions_is_detected() -> None:
    sticky = StickyPartitioner(1000, Random(1))
    sticky.update_load([2], [0], 3)
    assert sticky.current_partition(3) == 2
    sticky.update_load([0, 2], [9, 0], 3)
    assert sticky.current_partition(2) < 2
    assert {sticky.partition_for_batch(2, full=True) for _ in range(200)} == {0, 1}


@pytest.mark.behaviour("P8")
def test_a_partitioner_of_the_users_own_may_leave_the_choice_as_in_java() -> None:
    assert ANY == -1


@pytest.mark.behaviour("P8")
def test_each_partition_gets_a_whole_batch_before_it_is_left() -> None:
    sticky = StickyPartitioner(1000, Random(1))
    sticky.current_partition(50)
    sticky.count_append(1000, 50)
    second = sticky.partition_for_batch(50, full=False)
    sticky.count_append(999, 50)
    assert sticky.partition_for_batch(50, full=False) == second
    sticky.count_append(1000, 50)
    assert sticky.current_partition(50) == second
    sticky.count_append(1, 50)
    assert sticky.current_partition(50) != second
