from __future__ import annotations

import asyncio
from typing import Any

import pytest

import ottla.aio
from ottla import Producer
from ottla.client.producer import ProducerRecord
from ottla.errors import ConfigError, RecordTooLargeError
from ottla.model import RecordMetadata


class Upper:
    """Changes values to upper case and records outcomes."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        return record._replace(value=record.value.upper())

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: Exception | None) -> None:
        self.seen.append(metadata.offset if metadata else error)

    def close(self) -> None:
        self.seen.append("closed")


class Faulty:
    """Raises in every method."""

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        raise RuntimeError("no")

    on_acknowledgement = on_send


def test_interceptors_get_records_and_outcomes_and_lose_none_when_they_fail(
    servers: str, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    upper, reported = Upper(), []
    settings: Any = {"interceptor_classes": [Faulty(), upper], "value_serializer": str.encode}
    with Producer(bootstrap_servers=servers, **settings) as producer:
        future = producer.send(topic, "hello", on_delivery=lambda metadata, error: reported.append(metadata))
        assert future.result(10).offset == 0
        with pytest.raises(RecordTooLargeError):
            producer.send(topic, "x" * 2_000_000)
    assert reported == [future.result(0)]
    assert [str(each)[:17] for each in upper.seen] == ["0", "MESSAGE_TOO_LARGE", "closed"]
    assert "failed in on_send; the record is not affected" in caplog.text


def test_interceptors_are_called_once_for_each_batch_of_rows(servers: str, topic: str) -> None:
    upper = Upper()
    with Producer(bootstrap_servers=servers, interceptor_classes=[upper]) as producer:
        producer.send_many(topic, [b"a", b"b"])
        producer.flush(10)
        producer.send_many(topic, [b"c"])
        producer.send_many(topic, [bytes(2_000_000)])
    assert sorted(str(each)[:17] for each in upper.seen) == ["0", "2", "MESSAGE_TOO_LARGE", "closed"]


def test_objects_that_are_no_interceptors_are_rejected(servers: str) -> None:
    with pytest.raises(ConfigError, match="has neither on_send"):
        Producer(bootstrap_servers=servers, interceptor_classes=[object()])


def test_in_asyncio_they_see_each_record_once_also_where_it_has_to_wait_and_are_closed(
    servers: str, topic: str
) -> None:
    class Counting(Upper):
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            self.seen.append("sent")
            return super().on_send(record)

    counting = Counting()

    async def story() -> None:
        settings: Any = {"interceptor_classes": [counting], "buffer_memory": 2_000, "batch_size": 0}
        async with ottla.aio.Producer(bootstrap_servers=servers, **settings) as producer:
            for _ in range(20):
                await producer.send(topic, bytes(1_000))

    asyncio.run(story())
    assert counting.seen.count("sent") == 20
    assert counting.seen[-1] == "closed"
