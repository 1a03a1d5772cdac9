from __future__ import annotations

import pytest

from ottla.client.producer.future import RecordFuture
from ottla.client.producer.produce_request_result import ProduceRequestResult
from ottla.errors import KafkaError, RecordTooLargeError
from ottla.model import RecordMetadata


def note(result: ProduceRequestResult, seen: list[int], number: int) -> None:
    """Record `number` when the record at that index has its outcome."""
    RecordFuture(result, number, 0, 0, 0).add_done_callback(lambda future: seen.append(number))


def test_a_records_offset_is_its_batchs_and_its_place_in_it() -> None:
    result = ProduceRequestResult("t", 3)
    future = RecordFuture(result, 2, 1000, 4, 5)
    assert not future.done()
    result.complete(base_offset=40)
    assert future.result() == RecordMetadata("t", 3, 42, 1000, 4, 5)


def test_a_timestamp_of_the_broker_replaces_the_producers() -> None:
    result = ProduceRequestResult("t", 0)
    result.complete(base_offset=0, log_append_time=77)
    assert RecordFuture(result, 0, 1000, -1, -1).result().timestamp == 77


def test_without_an_answer_the_offset_is_unknown() -> None:
    result = ProduceRequestResult("t", 0)
    result.complete()
    assert RecordFuture(result, 5, 1000, -1, -1).result().offset == -1


def test_an_error_applies_to_all_records() -> None:
    result = ProduceRequestResult("t", 0)
    result.complete(error=ValueError("no"))
    for index in range(3):
        assert isinstance(RecordFuture(result, index, 0, 0, 0).exception(), ValueError)


def test_the_broker_may_blame_single_records() -> None:
    result = ProduceRequestResult("t", 0)
    result.complete(error={1: "a key is missing"})
    errors = [RecordFuture(result, index, 0, 0, 0).exception() for index in range(2)]
    assert str(errors[1]) == "INVALID_RECORD: a key is missing"
    assert "other records of its batch are invalid" in str(errors[0])
    assert isinstance(errors[0], KafkaError)


@pytest.mark.behaviour("P1")
def test_callbacks_run_in_the_order_of_the_records() -> None:
    result = ProduceRequestResult("t", 0)
    seen: list[int] = []
    for number in range(5):
        note(result, seen, number)
    result.complete(base_offset=0)
    assert seen == [0, 1, 2, 3, 4]


def test_completing_twice_changes_nothing() -> None:
    result = ProduceRequestResult("t", 0)
    assert result.complete(base_offset=1) is True
    assert result.complete(error=ValueError()) is False
    assert RecordFuture(result, 0, 0, 0, 0).exception() is None


def test_futures_and_callbacks_follow_a_batch_that_is_split_twice() -> None:
    whole, left, right, right_left, right_right = (ProduceRequestResult("t", 0) for _ in range(5))
    futures = [RecordFuture(whole, index, 0, 0, 0) for index in range(6)]
    seen: list[int] = []
    for index in range(6):
        note(whole, seen, index)
    whole.split([(0, left), (3, right)])
    right.split([(0, right_left), (1, right_right)])
    right_right.complete(base_offset=200)
    assert seen == [4, 5]
    left.complete(base_offset=100)
    right_left.complete(error=RecordTooLargeError(10))
    assert seen == [4, 5, 0, 1, 2, 3]
    assert [f.result().offset for f in futures if f.exception() is None] == [100, 101, 102, 200, 201]
    assert isinstance(futures[3].exception(), RecordTooLargeError)
    assert list(whole.iter_spans(6)) == [(100, 3), (-1, 1), (200, 2)]


def test_a_callback_added_after_completion_runs_at_once_also_after_a_split() -> None:
    whole, part = ProduceRequestResult("t", 0), ProduceRequestResult("t", 0)
    whole.split([(0, part)])
    part.complete(base_offset=9)
    seen: list[RecordMetadata | None] = []
    RecordFuture(whole, 0, 0, 0, 0).on_delivery(lambda metadata, error: seen.append(metadata))
    assert [m.offset for m in seen if m] == [9]
