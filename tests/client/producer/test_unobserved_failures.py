"""Failures without a callback, and with a discarded future, are raised by flush and close."""

from __future__ import annotations

import asyncio
import gc
import time
from functools import partial
from typing import Any

import pytest

import ottla.aio
from ottla import Producer
from ottla.errors import KafkaError, RecordTooLargeError, UndeliveredError
from tests.client.conftest import NewTopicName

LARGE = bytes(5_000)
PATIENCE = 60


@pytest.fixture
def narrow(new_topic: NewTopicName) -> str:
    """A topic with a size limit below the producer's: the broker rejects records that the producer accepts."""
    return new_topic(max_message_bytes=1_000)


@pytest.mark.behaviour("P1")
def test_flush_reports_unobserved_failures_with_count_and_reason_once(servers: str, narrow: str) -> None:
    with Producer(bootstrap_servers=servers) as producer:
        producer.send(narrow, LARGE)
        producer.send(narrow, LARGE)
        producer.send(narrow, b"small")
        with pytest.raises(UndeliveredError, match=r"^2 records were not delivered.*MESSAGE_TOO_LARGE") as caught:
            producer.flush(PATIENCE)
        producer.flush(PATIENCE)
    assert caught.value.count == 2
    assert isinstance(caught.value.first, RecordTooLargeError)
    assert caught.value.__cause__ is caught.value.first


@pytest.mark.behaviour("P1")
def test_close_reports_unobserved_failures_after_everything_is_closed(servers: str, narrow: str) -> None:
    with pytest.raises(UndeliveredError, match=r"^1 record was not"), Producer(bootstrap_servers=servers) as producer:
        producer.send(narrow, LARGE)
    producer.close()


def test_an_exception_is_not_hidden_by_the_report_of_close(
    servers: str, narrow: str, caplog: pytest.LogCaptureFixture
) -> None:
    def story() -> None:
        with Producer(bootstrap_servers=servers) as producer:
            producer.send(narrow, LARGE)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        story()
    assert "1 record was not delivered" in caplog.text


def test_a_failure_that_a_callback_received_is_not_reported_again(servers: str, narrow: str) -> None:
    heard: list[Any] = []
    with Producer(bootstrap_servers=servers) as producer:
        producer.send(narrow, LARGE, on_delivery=lambda metadata, error: heard.append(error))
        producer.flush(PATIENCE)
    assert isinstance(heard[0], RecordTooLargeError)


def test_a_retained_future_can_be_read_after_flush_and_close(servers: str, narrow: str) -> None:
    with Producer(bootstrap_servers=servers) as producer:
        kept = producer.send(narrow, LARGE)
        producer.flush(PATIENCE)
    assert isinstance(kept.exception(0), RecordTooLargeError)


def test_a_failure_of_a_future_whose_result_was_read_is_not_reported_again(servers: str, narrow: str) -> None:
    with Producer(bootstrap_servers=servers) as producer:
        with pytest.raises(KafkaError):
            producer.send(narrow, LARGE).result(PATIENCE)
        producer.flush(PATIENCE)


def test_the_next_flush_reports_the_failure_of_a_dropped_future(servers: str, narrow: str) -> None:
    with Producer(bootstrap_servers=servers) as producer:
        kept = [producer.send(narrow, LARGE)]
        producer.flush(PATIENCE)
        kept.clear()
        with pytest.raises(UndeliveredError, match=r"^1 record"):
            producer.flush(PATIENCE)


@pytest.mark.parametrize("how", ["send_many", "send_table"])
def test_oversized_rows_are_reported_when_the_receipt_is_dropped(servers: str, topic: str, how: str) -> None:
    pa = pytest.importorskip("pyarrow")
    values = [b"1", bytes(200_000), b"3"]
    with Producer(bootstrap_servers=servers, max_request_size=100_000) as producer:
        send = getattr(producer, how)
        receipt = send(topic, values if how == "send_many" else pa.table({"value": values}))
        producer.flush(PATIENCE)
        del receipt
        gc.collect()
        with pytest.raises(UndeliveredError, match=r"max\.request\.size"):
            producer.flush(PATIENCE)


@pytest.mark.behaviour("P1")
def test_in_asyncio_send_rejects_oversized_records_and_flush_and_close_report_failures(
    servers: str, narrow: str
) -> None:
    async def story() -> None:
        async with ottla.aio.Producer(bootstrap_servers=servers) as producer:
            with pytest.raises(RecordTooLargeError):
                await producer.send(narrow, bytes(2_000_000))
            await producer.send(narrow, LARGE)
            with pytest.raises(UndeliveredError, match=r"^1 record was not"):
                await producer.flush(PATIENCE)
            await producer.send(narrow, LARGE)

    with pytest.raises(UndeliveredError, match=r"^1 record was not"):
        asyncio.run(story())


def test_unobserved_failures_accumulate_until_they_are_reported(servers: str, narrow: str) -> None:
    with Producer(bootstrap_servers=servers) as producer:
        for _ in range(3):
            producer.send(narrow, LARGE)
            core, accumulator = producer._core, producer._core.accumulator
            mark = accumulator.flush_mark()
            accumulator.begin_flush()
            core.sender.wakeup()
            done = partial(accumulator.is_flushed, mark)
            assert core.sender.run(core.wait_until(done, time.monotonic() + PATIENCE))
            accumulator.end_flush()
        with pytest.raises(UndeliveredError, match=r"^3 records"):
            producer.flush(PATIENCE)
