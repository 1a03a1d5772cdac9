from __future__ import annotations

import asyncio
import gc
import logging
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from ottla import Consumer, Producer, TopicPartition
from ottla.client.producer.config import CodecName
from ottla.errors import (
    ConfigError,
    IllegalStateError,
    InvalidTopicError,
    KafkaTimeoutError,
    RecordTooLargeError,
    SerializationError,
)
from ottla.model import RecordMetadata
from tests.client.conftest import NewTopicName, eventually


def read(servers: str, topic: str, count: int, partitions: int = 1) -> list[Any]:
    """The first `count` records of a topic."""
    records: list[Any] = []
    with Consumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, index) for index in range(partitions)])
        eventually(lambda: records.extend(consumer.poll(1)) or len(records) >= count)  # type: ignore[func-returns-value]
    return records


@pytest.mark.behaviour("P1")
def test_send_returns_a_future_of_the_record_metadata(servers: str, topic: str) -> None:
    with Producer(bootstrap_servers=servers) as producer:
        futures = [producer.send(topic, b"value", key=b"key", timestamp=1000 + n) for n in range(3)]
        assert [f.result(10) for f in futures] == [RecordMetadata(topic, 0, n, 1000 + n, 3, 5) for n in range(3)]


@pytest.mark.behaviour("P1")
def test_waiting_for_each_result_makes_it_synchronous(servers: str, topic: str) -> None:
    with Producer(bootstrap_servers=servers, linger_ms=0) as producer:
        assert [producer.send(topic, b"v").result(10).offset for _ in range(20)] == list(range(20))


@pytest.mark.behaviour("P1")
def test_the_callback_runs_on_the_senders_thread(servers: str, topic: str) -> None:
    seen: list[tuple[RecordMetadata | None, Exception | None, str]] = []
    with Producer(bootstrap_servers=servers, client_id="me") as producer:
        for n in range(5):
            producer.send(
                topic, b"%d" % n, on_delivery=lambda m, e: seen.append((m, e, threading.current_thread().name))
            )
        producer.flush(10)
        assert [metadata.offset for metadata, _, _ in seen if metadata] == [0, 1, 2, 3, 4]
        assert {error for _, error, _ in seen} == {None}
        assert {name for _, _, name in seen} == {"ottla-producer-network-thread | me"}


@pytest.mark.behaviour("P1")
def test_the_future_can_be_awaited(servers: str, topic: str) -> None:
    async def main(producer: Producer) -> list[int]:
        return [metadata.offset for metadata in await asyncio.gather(*(wait(producer) for _ in range(10)))]

    async def wait(producer: Producer) -> RecordMetadata:
        return await producer.send(topic, b"v")

    with Producer(bootstrap_servers=servers) as producer:
        assert sorted(asyncio.run(main(producer))) == list(range(10))


def test_a_callback_that_raises_is_logged_and_costs_no_record(
    servers: str, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    def stumble(metadata: RecordMetadata | None, error: Exception | None) -> None:
        raise RuntimeError("the callback is at fault")

    with caplog.at_level(logging.ERROR), Producer(bootstrap_servers=servers) as producer:
        futures = [producer.send(topic, b"v", on_delivery=stumble) for _ in range(3)]
        producer.flush(10)
        assert [future.result(0).offset for future in futures] == [0, 1, 2]
    causes = [repr(record.exc_info[1]) for record in caplog.records if record.exc_info]
    assert causes == ["RuntimeError('the callback is at fault')"] * 3


def test_flush_returns_after_the_callbacks_have_run(servers: str, topic: str) -> None:
    done: list[int] = []
    with Producer(bootstrap_servers=servers, linger_ms=10_000) as producer:
        for _ in range(20):
            producer.send(topic, b"v", on_delivery=lambda m, e: done.append(1))
            producer.flush(10)
        assert len(done) == 20


def test_flush_in_a_callback_is_refused_rather_than_waiting_for_itself(servers: str, topic: str) -> None:
    errors: list[Exception] = []
    with Producer(bootstrap_servers=servers) as producer:

        def flush(metadata: RecordMetadata | None, error: Exception | None) -> None:
            try:
                producer.flush()
            except IllegalStateError as caught:
                errors.append(caught)

        producer.send(topic, b"v", on_delivery=flush)
        producer.flush(10)
    assert "inside a delivery callback" in str(errors[0])


@pytest.mark.behaviour("P3")
def test_acks_0_never_waits_and_knows_no_offset(servers: str, topic: str) -> None:
    with Producer(bootstrap_servers=servers, acks=0) as producer:
        assert producer.send(topic, b"v").result(10).offset == -1
    assert [record.value for record in read(servers, topic, 1)] == [b"v"]


@pytest.mark.behaviour("P3")
@pytest.mark.parametrize("acks", [1, "all", -1])
def test_the_other_acks_return_an_offset(servers: str, topic: str, acks: Any) -> None:
    with Producer(bootstrap_servers=servers, acks=acks) as producer:
        assert producer.send(topic, b"v").result(10).offset == 0


@pytest.mark.behaviour("P9")
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_survive_each_compression_codec(servers: str, topic: str, codec: CodecName) -> None:
    with Producer(bootstrap_servers=servers, compression_type=codec, linger_ms=1000) as producer:
        for n in range(200):
            producer.send(topic, b"value %d " % n * 10, key=b"%d" % n, headers=[("h", b"x"), ("h", None)], timestamp=n)
    records = read(servers, topic, 200)
    assert [record.value for record in records] == [b"value %d " % n * 10 for n in range(200)]
    assert [record.key for record in records] == [b"%d" % n for n in range(200)]
    assert [record.timestamp for record in records] == list(range(200))
    assert records[7].headers == [("h", b"x"), ("h", None)]


def test_none_differs_from_empty_bytes(servers: str, topic: str) -> None:
    with Producer(bootstrap_servers=servers) as producer:
        producer.send(topic, None, key=b"")
        producer.send(topic, b"", key=None)
    assert [(r.key, r.value) for r in read(servers, topic, 2)] == [(b"", None), (None, b"")]


@pytest.mark.behaviour("P1")
def test_a_record_that_is_too_large_is_refused_by_send_and_no_other_is(servers: str, topic: str) -> None:
    with Producer(bootstrap_servers=servers, max_request_size=1000) as producer:
        with pytest.raises(RecordTooLargeError, match=r"more than max\.request\.size = 1000"):
            producer.send(topic, bytes(1000))
        assert producer.send(topic, b"v").result(10).offset == 0


def test_a_record_too_large_for_its_topic_fails_alone_and_its_batch_is_split(
    servers: str, new_topic: NewTopicName
) -> None:
    topic = new_topic(max_message_bytes=500)
    with Producer(bootstrap_servers=servers, linger_ms=1000) as producer:
        futures = [producer.send(topic, bytes(2000 if n == 5 else 50)) for n in range(20)]
        producer.flush(20)
        failed = [n for n, future in enumerate(futures) if future.exception(0)]
        assert failed == [5]
        assert isinstance(futures[5].exception(0), RecordTooLargeError)
        offsets = [future.result(0).offset for n, future in enumerate(futures) if n != 5]
        assert sorted(offsets) == list(range(19))
    assert len(read(servers, topic, 19)) == 19


def test_text_without_a_serializer_is_refused_with_the_remedy(servers: str, topic: str) -> None:
    with Producer(bootstrap_servers=servers) as producer:
        with pytest.raises(SerializationError, match=r"the value is str, not bytes; .*value\.serializer"):
            producer.send(topic, "text")
        with pytest.raises(SerializationError, match="the key is int"):
            producer.send(topic, b"v", key=5)
        with pytest.raises(SerializationError, match="header"):
            producer.send(topic, b"v", headers=[("a", "text")])  # type: ignore[list-item]


def test_serializers_accept_any_type(servers: str, topic: str) -> None:
    with Producer(bootstrap_servers=servers, key_serializer=str.encode, value_serializer=str.encode) as producer:
        producer.send(topic, "héllo", key="k")
    assert [(r.key, r.value) for r in read(servers, topic, 1)] == [(b"k", "héllo".encode())]


def test_a_serializer_that_fails_is_named(servers: str, topic: str) -> None:
    with (
        Producer(bootstrap_servers=servers, value_serializer=str.encode) as producer,
        pytest.raises(SerializationError, match=r"value\.serializer failed: TypeError"),
    ):
        producer.send(topic, 5)


@pytest.mark.parametrize("data", [bytearray(b"v"), memoryview(b"v")])
def test_other_kinds_of_bytes_are_bytes_too(servers: str, topic: str, data: object) -> None:
    with Producer(bootstrap_servers=servers) as producer:
        assert producer.send(topic, data).result(10).serialized_value_size == 1


@pytest.mark.behaviour("P8")
def test_the_partition_may_be_chosen_by_the_record_or_by_a_function(servers: str, new_topic: NewTopicName) -> None:
    topic = new_topic(5)
    with Producer(bootstrap_servers=servers, partitioner_class=lambda t, k, v, n: len(v) % n) as producer:
        assert producer.send(topic, b"123", partition=1).result(10).partition == 1
        assert producer.send(topic, b"123").result(10).partition == 3


def test_a_partitioner_that_returns_an_unknown_partition_is_an_error(servers: str, topic: str) -> None:
    with (
        Producer(bootstrap_servers=servers, partitioner_class=lambda t, k, v, n: n) as producer,
        pytest.raises(ValueError, match=r"the partitioner chose partition 1 of .*, which has 1"),
    ):
        producer.send(topic, b"v")


def test_a_missing_partition_is_waited_for_and_then_named(servers: str, new_topic: NewTopicName) -> None:
    topic = new_topic(1)  # beforehand: making it may take longer than the producer waits
    with Producer(bootstrap_servers=servers, max_block_ms=2_000) as producer:
        producer.send(topic, b"v", partition=0)  # from here on the topic is known
        with pytest.raises(
            KafkaTimeoutError, match=r"has partitions 0, and 7 was not created .* max\.block\.ms = 2000"
        ):
            producer.send(topic, b"v", partition=7)


def test_an_invalid_topic_name_is_rejected_at_once(servers: str) -> None:
    with Producer(bootstrap_servers=servers) as producer, pytest.raises(InvalidTopicError, match="bad topic"):
        producer.send("bad topic", b"v")


def test_the_partitions_of_a_topic_can_be_listed(servers: str, new_topic: NewTopicName) -> None:
    topic = new_topic(3)
    with Producer(bootstrap_servers=servers) as producer:
        assert [info.partition for info in producer.partitions_for(topic)] == [0, 1, 2]


def test_many_threads_may_send_at_once(servers: str, new_topic: NewTopicName) -> None:
    topic = new_topic(3)
    with Producer(bootstrap_servers=servers) as producer:

        def work(name: int) -> None:
            for n in range(300):
                producer.send(topic, b"%d-%d" % (name, n), partition=name)

        threads = [threading.Thread(target=work, args=(name,)) for name in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    records = read(servers, topic, 900, partitions=3)
    for name in range(3):
        mine = [record.value for record in records if record.partition == name]
        assert mine == [b"%d-%d" % (name, n) for n in range(300)], "each thread's order is kept"


def test_closing_sends_what_is_queued(servers: str, topic: str) -> None:
    producer = Producer(bootstrap_servers=servers, linger_ms=60_000)
    futures = [producer.send(topic, b"v") for _ in range(10)]
    producer.close()
    producer.close()
    assert [future.result(0).offset for future in futures] == list(range(10))
    with pytest.raises(IllegalStateError, match="the producer is closed"):
        producer.send(topic, b"v")


def test_a_forgotten_producer_sends_what_it_has_and_ends(servers: str, topic: str) -> None:
    producer = Producer(bootstrap_servers=servers, linger_ms=60_000)
    thread = producer._core.sender.thread
    future = producer.send(topic, b"v")
    del producer
    gc.collect()
    assert future.result(10).offset == 0
    thread.join(10)
    assert not thread.is_alive()


def test_leaving_the_process_without_flush_still_sends(servers: str, topic: str) -> None:
    code = (
        "from ottla import Producer\n"
        f"p = Producer(bootstrap_servers={servers!r}, linger_ms=60_000)\n"
        f"for n in range(100): p.send({topic!r}, b'%d' % n)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    said = [line for line in result.stderr.splitlines() if not line.startswith("running without compiled hot loops")]
    assert (result.returncode, said) == (0, [])
    assert len(read(servers, topic, 100)) == 100


def test_a_conflict_between_settings_is_an_error_at_construction(servers: str) -> None:
    with pytest.raises(ConfigError, match=r"delivery\.timeout\.ms"):
        Producer(bootstrap_servers=servers, linger_ms=100_000, delivery_timeout_ms=100_000)


def test_default_client_ids_are_counted(servers: str) -> None:
    with Producer(bootstrap_servers=servers) as one, Producer(bootstrap_servers=servers) as two:
        first, second = (int(p.client_id.removeprefix("producer-")) for p in (one, two))
        assert second == first + 1


def test_times_and_partitions_below_zero_are_refused(servers: str, topic: str) -> None:
    with Producer(bootstrap_servers=servers) as producer:
        with pytest.raises(ValueError, match="timestamp = -1"):
            producer.send(topic, b"v", timestamp=-1)
        with pytest.raises(ValueError, match="partition = -1"):
            producer.send(topic, b"v", partition=-1)


def test_a_sender_that_always_fails_does_not_spin(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Producer(bootstrap_servers=servers, retry_backoff_ms=50) as producer:
        stumbles: list[float] = []

        def stumble(timeout: float) -> None:
            stumbles.append(time.monotonic())
            raise ValueError

        monkeypatch.setattr(producer._core.sender._client, "poll", stumble)
        producer._core.sender._client.wakeup()
        eventually(lambda: len(stumbles) >= 4)
        monkeypatch.undo()
    assert stumbles[3] - stumbles[0] >= 0.15
