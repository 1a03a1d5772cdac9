"""The oldest and the newest records that match, over all partitions of a topic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pytest

from ottla import Admin, Broker, Consumer, NewTopic, Producer, TopicPartition
from ottla.client.admin import Admin as AdminClient
from ottla.console.record_search import FIRST_WINDOW, FoundRecords, find_newest, find_oldest
from ottla.console.record_view import RecordCondition
from ottla.model import EARLIEST, LATEST

PARTITIONS = 3
COUNT = 4 * FIRST_WINDOW
"""Records of partition 0, the newest of which are beyond its first window; the others have one in a hundred."""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        with Admin(broker.client_settings()) as admin, Producer(broker.client_settings()) as producer:
            admin.create_topics([NewTopic("t", PARTITIONS)])
            for number in range(COUNT):
                partition = 1 + number // 100 % 2 if number % 100 == 0 else 0
                key = b"rare" if number in (3, 700) else b"k"
                producer.send("t", b"%d" % number, key=key, partition=partition, timestamp=1_000 + number)
            producer.flush()
        yield broker


ANY = RecordCondition()
Search = Callable[..., FoundRecords]


def search(
    broker: Broker, how: Search, most: int, wanted: RecordCondition = ANY, **more: float
) -> tuple[list[int], FoundRecords]:
    """Return the numbers that a search finds, and all of its result."""
    with AdminClient(broker.client_settings()) as admin, Consumer(broker.client_settings()) as consumer:
        first, end = (offsets(admin, when) for when in (EARLIEST, LATEST))
        found = how(consumer, first, end, wanted, most, **more)
    return [int(each.value or b"") for each in found.records], found


def offsets(admin: AdminClient, when: int) -> Mapping[TopicPartition, int]:
    asked = {TopicPartition("t", partition): when for partition in range(PARTITIONS)}
    return {tp: at.offset for tp, at in admin.list_offsets(asked).items()}


def test_the_latest_are_those_of_all_partitions_together_the_newest_first(broker: Broker) -> None:
    numbers, found = search(broker, find_newest, 150)
    assert numbers == list(range(COUNT - 1, COUNT - 151, -1))
    assert not found.is_whole


def test_the_earliest_are_those_of_all_partitions_together_the_oldest_first(broker: Broker) -> None:
    numbers, _ = search(broker, find_oldest, 150)
    assert numbers == list(range(150))


def test_a_search_for_the_latest_reads_older_records_until_it_has_enough_matches(broker: Broker) -> None:
    numbers, found = search(broker, find_newest, 50, RecordCondition(key="rare"))
    assert numbers == [700, 3]
    assert found.looked_at == COUNT
    assert found.is_whole


def test_a_search_for_the_latest_stops_where_all_that_is_left_is_older_than_what_it_found(broker: Broker) -> None:
    numbers, found = search(broker, find_newest, 2)
    assert numbers == [COUNT - 1, COUNT - 2]
    assert found.looked_at < COUNT / 2


def test_everything_is_found_if_the_limit_is_large_enough(broker: Broker) -> None:
    for how in (find_newest, find_oldest):
        numbers, found = search(broker, how, COUNT)
        assert sorted(numbers) == list(range(COUNT))
        assert found.is_whole


def test_a_search_without_time_returns_what_it_has_and_that_it_is_not_complete(broker: Broker) -> None:
    for how in (find_newest, find_oldest):
        numbers, found = search(broker, how, 5, seconds=0)
        assert numbers == []
        assert not found.is_whole
