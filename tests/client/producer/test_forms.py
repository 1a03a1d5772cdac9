"""The path of a record in the compiled and the plain form, which behave the same."""

from __future__ import annotations

import gc
import sys
from random import Random
from types import ModuleType
from typing import Any

import pytest

import ottla.client.producer.deliveries as compiled_deliveries
import ottla.client.producer.partitioner as compiled_partitioner
from ottla.client.producer.partitioner import ANY
from ottla.model import RecordMetadata
from tests.plain import is_compiled, plain

DELIVERIES = [compiled_deliveries, plain("ottla.client.producer.deliveries")]
Told = list[tuple[Any, Any]]


def note(story: Told) -> Any:
    return lambda metadata, error: story.append((metadata, error))


@pytest.mark.behaviour("P1")
@pytest.mark.parametrize("form", DELIVERIES, ids=["compiled", "plain"])
def test_each_callback_gets_the_metadata_of_its_own_record(form: ModuleType) -> None:
    reported: Told = []
    deliveries = form.DeliveryCallbacks()
    for index in range(40):
        deliveries.add(note(reported), 2 * index, 1000 + index, -1, index)
    deliveries.call_with_metadata("t", 3, 100, -1)
    assert reported == [(("t", 3, 100 + 2 * index, 1000 + index, -1, index), None) for index in range(40)]


@pytest.mark.parametrize("form", DELIVERIES, ids=["compiled", "plain"])
def test_a_callback_gets_a_complete_named_tuple_that_keeps_no_batch_alive(
    form: ModuleType,
) -> None:
    topic, offset = "".join(["a", "topic"]), 2**60
    before = sys.getrefcount(topic)
    reported = [form.new_metadata(topic, 7, offset + number, 2**50, -1, 1000) for number in range(100)]
    assert sys.getrefcount(topic) == before + 100
    assert {type(each) for each in reported} == {RecordMetadata}
    assert reported[3] == RecordMetadata(topic, 7, offset + 3, 2**50, -1, 1000)
    assert (reported[3].offset, hash(reported[3])) == (offset + 3, hash(RecordMetadata(*reported[3])))
    assert all(map(gc.is_tracked, reported))
    del reported
    assert sys.getrefcount(topic) == before


@pytest.mark.parametrize("form", DELIVERIES, ids=["compiled", "plain"])
def test_callbacks_continue_after_one_raises(form: ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    reported: Told = []
    deliveries = form.DeliveryCallbacks()
    deliveries.add(lambda metadata, error: 1 / 0, 0, 0, -1, -1)
    deliveries.add(note(reported), 1, 0, -1, -1)
    deliveries.call_with_errors(lambda index: ValueError(index))
    assert [str(error) for _, error in reported] == ["1"]
    assert "a callback raised an error; the record or request itself is not affected" in caplog.text


@pytest.mark.parametrize("form", DELIVERIES, ids=["compiled", "plain"])
def test_callbacks_of_a_split_batch_stay_with_their_records(form: ModuleType) -> None:
    reported: Told = []
    whole, left, right = form.DeliveryCallbacks(), form.DeliveryCallbacks(), form.DeliveryCallbacks()
    for index in range(5):
        whole.add(note(reported), index, index, -1, -1)
    whole.move_to_parts(lambda index: (left, index) if index < 3 else (right, index - 3))
    right.call_with_metadata("t", 0, 50, -1)
    left.call_with_metadata("t", 0, -1, 9)
    assert [(m.offset, m.timestamp) for m, _ in reported] == [(50, 3), (51, 4), (-1, 9), (-1, 9), (-1, 9)]


@pytest.mark.behaviour("P8")
def test_both_sticky_partitioners_draw_the_same() -> None:
    drawn = [walk(form) for form in (compiled_partitioner, plain("ottla.client.producer.partitioner"))]
    assert drawn[0] == drawn[1]
    assert ANY not in drawn[0]


def walk(form: ModuleType) -> list[int]:
    """Return the partitions of two hundred records, with occasional updates of the queue lengths."""
    sticky, chance, places = form.StickyPartitioner(1000, Random(7)), Random(8), []
    for number in range(200):
        if number % 10 == 0:
            sticky.update_load(range(6), [chance.randrange(4) for _ in range(6)], 6)
        places.append(sticky.partition_for_batch(6, True) if number % 7 == 0 else sticky.current_partition(6))
        sticky.count_append(chance.randrange(600), 6)
    return places


def test_the_compared_implementations_are_different() -> None:
    """Without a compiler only the plain form exists, and these tests run it alone."""
    assert not is_compiled(DELIVERIES[1])
