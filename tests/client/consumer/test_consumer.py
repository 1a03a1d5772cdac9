from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from ottla import Broker, Consumer, Producer, TopicPartition
from ottla.client.consumer.offsets import offset_fetcher
from ottla.errors import (
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
    WakeupError,
)
from ottla.model import OffsetAndTimestamp, TimestampType
from tests.client.conftest import NewTopicName, eventually


@pytest.fixture(scope="session")
def producer(servers: str) -> Iterator[Producer]:
    with Producer(bootstrap_servers=servers, linger_ms=0) as client:
        yield client


def consumer_of(servers: str, topic: str, partitions: int = 1, **settings: Any) -> Consumer:
    """A consumer at the beginning of a topic."""
    consumer = Consumer(bootstrap_servers=servers, **{"auto_offset_reset": "earliest", **settings})
    consumer.assign([TopicPartition(topic, index) for index in range(partitions)])
    return consumer


def fill(producer: Producer, topic: str, count: int, partition: int = 0, size: int = 0) -> None:
    for n in range(count):
        producer.send(topic, b"%d" % n + bytes(size), partition=partition, timestamp=1000 + n)
    producer.flush(20)


def values(records: Any) -> list[bytes]:
    return [record.value for record in records]


def take(consumer: Consumer, count: int) -> list[Any]:
    """Poll until `count` records are here."""
    records: list[Any] = []
    eventually(lambda: records.extend(consumer.poll(1)) or len(records) >= count)  # type: ignore[func-returns-value]
    return records


@pytest.mark.behaviour("C2")
def test_poll_returns_what_is_buffered_in_portions(servers: str, topic: str, producer: Producer) -> None:
    fill(producer, topic, 1200)
    with consumer_of(servers, topic) as consumer:
        assert [len(consumer.poll(5)) for _ in range(3)] == [500, 500, 200]


@pytest.mark.behaviour("C2")
def test_the_next_fetch_is_sent_before_records_are_returned(servers: str, topic: str, producer: Producer) -> None:
    fill(producer, topic, 10)
    with consumer_of(servers, topic, max_poll_records=6) as consumer:
        assert len(consumer.poll(5)) == 6
        assert consumer._core.fetcher.nodes_with_pending_fetch == set(), "the partition still has records here"
        assert len(consumer.poll(0)) == 4
        assert len(consumer._core.fetcher.nodes_with_pending_fetch) == 1
        assert consumer._core.client.client.in_flight_requests.count() == 1
        assert consumer._core.client.unsent == {}, "it has left"


@pytest.mark.behaviour("C2")
def test_buffered_records_are_returned_without_network_io(
    servers: str, topic: str, producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(producer, topic, 10)
    with consumer_of(servers, topic, max_poll_records=5) as consumer:
        consumer.poll(5)
        monkeypatch.setattr(consumer._core.client.client, "poll", None)
        assert len(consumer.poll(5)) == 5
        monkeypatch.undo()


@pytest.mark.behaviour("C3")
def test_poll_without_data_returns_empty_at_the_timeout(servers: str, topic: str) -> None:
    with consumer_of(servers, topic) as consumer:
        consumer.position(TopicPartition(topic, 0))
        started = time.monotonic()
        records = consumer.poll(0.3)
        assert 0.3 <= time.monotonic() - started < 10
        assert len(records) == 0
        assert not records


@pytest.mark.behaviour("C3")
def test_data_that_arrives_while_poll_waits_is_returned_at_once(servers: str, topic: str, producer: Producer) -> None:
    with consumer_of(servers, topic) as consumer:
        consumer.poll(0)
        timer = threading.Timer(0.1, producer.send, args=(topic, b"late"))
        timer.start()
        started = time.monotonic()
        assert values(consumer.poll(30)) == [b"late"]
        assert time.monotonic() - started < 10
        timer.join()


@pytest.mark.behaviour("C4")
def test_the_broker_holds_its_answer_until_there_are_enough_bytes_or_the_wait_is_over(
    servers: str, topic: str, producer: Producer
) -> None:
    fill(producer, topic, 1)
    with consumer_of(servers, topic, fetch_min_bytes=1_000_000, fetch_max_wait_ms=400) as consumer:
        consumer.position(TopicPartition(topic, 0))
        started = time.monotonic()
        assert len(consumer.poll(20)) == 1
        assert 0.35 <= time.monotonic() - started < 10


@pytest.mark.behaviour("C4")
def test_enough_bytes_end_the_wait(servers: str, topic: str, producer: Producer) -> None:
    fill(producer, topic, 1, size=5000)
    with consumer_of(servers, topic, fetch_min_bytes=5000, fetch_max_wait_ms=60_000) as consumer:
        assert len(consumer.poll(20)) == 1


@pytest.mark.behaviour("C4")
def test_a_batch_larger_than_all_limits_is_returned_whole(servers: str, topic: str, producer: Producer) -> None:
    fill(producer, topic, 2, size=50_000)
    with consumer_of(servers, topic, fetch_max_bytes=10, max_partition_fetch_bytes=10) as consumer:
        assert [len(r.value) for r in take(consumer, 2)] == [50_001, 50_001]


@pytest.mark.behaviour("C4")
def test_the_share_of_a_partition_is_capped(servers: str, topic: str, producer: Producer) -> None:
    for n in range(10):
        producer.send(topic, bytes(1000), timestamp=n).result(10)
    with consumer_of(servers, topic, max_partition_fetch_bytes=3500) as consumer:
        assert len(consumer.poll(5)) == 3


@pytest.mark.behaviour("C11")
def test_the_default_client_id_names_the_group_and_counts(servers: str) -> None:
    with Consumer(bootstrap_servers=servers, group_id="billing") as one, Consumer(bootstrap_servers=servers) as two:
        assert one.client_id.startswith("consumer-billing-")
        number = int(one.client_id.removeprefix("consumer-billing-"))
        assert two.client_id == f"consumer-{number + 1}"
    with Consumer(bootstrap_servers=servers, client_id="mine", group_id="billing") as named:
        assert named.client_id == "mine"


@pytest.mark.behaviour("C18")
def test_the_classes_of_a_consumer_have_kafkas_names(servers: str, topic: str) -> None:
    with consumer_of(servers, topic) as consumer:
        assert type(consumer._core.fetcher).__name__ == "Fetcher"
        assert type(consumer._core.client).__name__ == "ConsumerNetworkClient"
        assert type(consumer._core.client.client).__name__ == "NetworkClient"
        assert type(consumer._core.subscriptions).__name__ == "SubscriptionState"
        for part, name in [
            (consumer._core.fetcher, "send_fetches"),
            (consumer._core.fetcher, "completed_fetches"),
            (consumer._core.fetcher, "collect_fetch"),
            (consumer._core.client, "unsent"),
            (consumer._core.client, "pending_completion"),
            (consumer._core.client.client, "in_flight_requests"),
        ]:
            assert hasattr(part, name)


@pytest.mark.behaviour("C19")
def test_a_record_has_all_of_its_fields(servers: str, topic: str, producer: Producer) -> None:
    producer.send(topic, b"value", key=b"key", headers={"a": b"1", "b": None}, timestamp=1234).result(10)
    with consumer_of(servers, topic) as consumer:
        (record,) = consumer.poll(10)
        assert (record.topic, record.partition, record.offset, record.timestamp) == (topic, 0, 0, 1234)
        assert (record.key, record.value, record.headers) == (b"key", b"value", [("a", b"1"), ("b", None)])
        assert (record.serialized_key_size, record.serialized_value_size) == (3, 5)
        assert record.timestamp_type is TimestampType.CREATE_TIME
        assert record.leader_epoch >= 0
        assert f"topic={topic!r}, partition=0, offset=0" in repr(record)


@pytest.mark.behaviour("C19")
def test_records_can_be_returned_by_partition(servers: str, new_topic: NewTopicName, producer: Producer) -> None:
    topic = new_topic(2)
    fill(producer, topic, 3, partition=0)
    fill(producer, topic, 2, partition=1)
    with consumer_of(servers, topic, 2) as consumer:
        got: dict[int, list[bytes]] = {0: [], 1: []}

        def poll() -> bool:
            records = consumer.poll(1)
            for tp in records.partitions():
                got[tp.partition] += values(records.records(tp))
            return sum(map(len, got.values())) == 5

        eventually(poll)
        assert got == {0: [b"0", b"1", b"2"], 1: [b"0", b"1"]}


@pytest.mark.behaviour("C19")
def test_seek_accepts_any_offset(servers: str, topic: str, producer: Producer) -> None:
    fill(producer, topic, 10)
    tp = TopicPartition(topic, 0)
    with consumer_of(servers, topic) as consumer:
        consumer.seek(tp, 7)
        assert consumer.position(tp) == 7
        assert values(take(consumer, 3)) == [b"7", b"8", b"9"]
        consumer.seek(tp, 2)
        assert values(take(consumer, 8))[0] == b"2"
        consumer.seek_to_beginning(tp)
        assert consumer.position(tp) == 0
        consumer.seek_to_end()
        assert consumer.position(tp) == 10
        with pytest.raises(ValueError, match="offset = -1: must not be negative"):
            consumer.seek(tp, -1)


@pytest.mark.behaviour("C19")
def test_seeking_drops_what_was_buffered(servers: str, topic: str, producer: Producer) -> None:
    fill(producer, topic, 10)
    tp = TopicPartition(topic, 0)
    with consumer_of(servers, topic, max_poll_records=3) as consumer:
        assert values(consumer.poll(10)) == [b"0", b"1", b"2"]
        consumer.seek(tp, 8)
        assert values(take(consumer, 2)) == [b"8", b"9"]


@pytest.mark.behaviour("C19")
def test_positions_advance_with_returned_records(servers: str, topic: str, producer: Producer) -> None:
    fill(producer, topic, 10)
    tp = TopicPartition(topic, 0)
    with consumer_of(servers, topic, max_poll_records=3) as consumer:
        consumer.poll(10)
        assert consumer.position(tp) == 3
        assert consumer.current_lag(tp) == 7


@pytest.mark.behaviour("C19")
def test_offsets_can_be_looked_up(servers: str, new_topic: NewTopicName, producer: Producer) -> None:
    topic = new_topic(2)
    fill(producer, topic, 5)
    a, b = (TopicPartition(topic, index) for index in range(2))
    with Consumer(bootstrap_servers=servers) as consumer:
        assert consumer.beginning_offsets([a, b]) == {a: 0, b: 0}
        assert consumer.end_offsets([a, b]) == {a: 5, b: 0}
        found = consumer.offsets_for_times({a: 1003, b: 0})
        assert found == {a: OffsetAndTimestamp(3, 1003, 0), b: None}
        assert consumer.offsets_for_times({a: 5000}) == {a: None}


@pytest.mark.behaviour("C19")
def test_a_paused_partition_waits_with_what_is_buffered(
    servers: str, new_topic: NewTopicName, producer: Producer
) -> None:
    topic = new_topic(2)
    fill(producer, topic, 4, partition=0)
    fill(producer, topic, 4, partition=1)
    a = TopicPartition(topic, 0)
    with consumer_of(servers, topic, 2) as consumer:
        consumer.pause(a)
        assert consumer.paused() == {a}
        assert {r.partition for r in take(consumer, 4)} == {1}
        assert len(consumer.poll(0.05)) == 0
        consumer.resume(a)
        assert {r.partition for r in take(consumer, 4)} == {0}


@pytest.mark.behaviour("C19")
def test_topics_and_partitions_can_be_listed(servers: str, new_topic: NewTopicName) -> None:
    topic = new_topic(3)
    with Consumer(bootstrap_servers=servers, allow_auto_create_topics=False) as consumer:
        assert topic in consumer.topics()
        assert [info.partition for info in consumer.partitions_for(topic)] == [0, 1, 2]
        assert consumer.partitions_for("there-is-no-such-topic") == []


@pytest.mark.behaviour("C19")
def test_a_new_assignment_keeps_the_positions_of_partitions_in_both(
    servers: str, new_topic: NewTopicName, producer: Producer
) -> None:
    topic = new_topic(2)
    fill(producer, topic, 4, partition=0)
    fill(producer, topic, 4, partition=1)
    a, b = (TopicPartition(topic, index) for index in range(2))
    with consumer_of(servers, topic, 2) as consumer:
        take(consumer, 8)
        consumer.assign([b])
        assert consumer.assignment() == {b}
        assert consumer.position(b) == 4
        with pytest.raises(IllegalStateError, match="not assigned"):
            consumer.position(a)


def test_closing_ends_the_fetch_session_at_once() -> None:
    with Broker() as broker, Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        producer.send("t", b"first").result(5)
        running: Any = broker._running
        sessions = running._server.node.fetch_sessions
        with consumer_of(broker.bootstrap_servers, "t") as consumer:
            take(consumer, 1)
            consumer.poll(0.1)
            assert len(sessions) == 1
        deadline = time.monotonic() + 5
        while len(sessions):
            assert time.monotonic() < deadline


@pytest.mark.behaviour("C19")
def test_wakeup_ends_a_poll_of_another_thread(servers: str, topic: str) -> None:
    with consumer_of(servers, topic) as consumer:
        consumer.poll(0)
        timer = threading.Timer(0.05, consumer.wakeup)
        timer.start()
        with pytest.raises(WakeupError):
            consumer.poll(30)
        timer.join()
        assert len(consumer.poll(0)) == 0, "it can go on"


@pytest.fixture
def without_collections() -> Iterator[None]:
    """Python passes over an interrupt in a finalizer, as of a file of the broker's in the same process: none runs meanwhile."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("without_collections")
def test_ctrl_c_ends_a_poll_and_the_consumer_can_still_be_closed(servers: str, topic: str) -> None:
    consumer = consumer_of(servers, topic)
    consumer.poll(0)
    timer = threading.Timer(0.05, os.kill, args=(os.getpid(), signal.SIGINT))
    timer.start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        consumer.poll(30)
    consumer.close()
    assert time.monotonic() - started < 20
    timer.join()


def test_iteration_continues_across_polls(servers: str, topic: str, producer: Producer) -> None:
    fill(producer, topic, 7)
    with consumer_of(servers, topic, max_poll_records=3) as consumer:
        got = []
        for record in consumer:
            got.append(record.value)
            if len(got) == 7:
                consumer.close()
    assert got == [b"%d" % n for n in range(7)]


@pytest.mark.behaviour("C19")
def test_an_end_offset_stops_reading(servers: str, topic: str, producer: Producer) -> None:
    fill(producer, topic, 10)
    tp = TopicPartition(topic, 0)
    with consumer_of(servers, topic) as consumer:
        consumer.bound({tp: 4})
        assert values(consumer.poll(10)) == [b"0", b"1", b"2", b"3"]
        assert consumer.position(tp) == 4
        assert len(consumer.poll(0)) == 0
        consumer.bound({tp: None})
        assert len(take(consumer, 6)) == 6


def test_a_deleted_offset_is_reset_by_the_policy(servers: str, topic: str, producer: Producer) -> None:
    fill(producer, topic, 3)
    tp = TopicPartition(topic, 0)
    with consumer_of(servers, topic) as consumer:
        consumer.seek(tp, 1000)
        assert len(take(consumer, 3)) == 3


def test_a_deleted_offset_is_an_error_without_a_policy(servers: str, topic: str, producer: Producer) -> None:
    fill(producer, topic, 3)
    tp = TopicPartition(topic, 0)
    with consumer_of(servers, topic, auto_offset_reset="none") as consumer:
        with pytest.raises(OffsetOutOfRangeError, match=f"no position for {topic}-0, and auto.offset.reset = none"):
            consumer.poll(10)
        consumer.seek(tp, 1000)
        with pytest.raises(OffsetOutOfRangeError, match=f"{topic}-0 has no offset 1000"):
            consumer.poll(10)
        consumer.seek(tp, 1)
        assert len(take(consumer, 2)) == 2


def test_the_latest_policy_reads_only_later_records(servers: str, topic: str, producer: Producer) -> None:
    fill(producer, topic, 3)
    with consumer_of(servers, topic, auto_offset_reset="latest") as consumer:
        assert consumer.position(TopicPartition(topic, 0)) == 3
        producer.send(topic, b"new").result(10)
        assert values(take(consumer, 1)) == [b"new"]


def test_deserializers_return_any_type(servers: str, topic: str, producer: Producer) -> None:
    producer.send(topic, b"5", key=b"k").result(10)
    producer.send(topic, None).result(10)
    with consumer_of(servers, topic, value_deserializer=int, key_deserializer=bytes.decode) as consumer:
        assert [(r.key, r.value) for r in take(consumer, 2)] == [("k", 5), (None, None)]


def test_a_second_thread_is_refused(servers: str, topic: str) -> None:
    errors: list[Exception] = []

    def intrude(consumer: Consumer) -> None:
        try:
            consumer.poll(0)
        except IllegalStateError as error:
            errors.append(error)
        finally:
            consumer.wakeup()

    with consumer_of(servers, topic) as consumer:
        consumer.poll(0)
        thread = threading.Timer(0.05, intrude, args=(consumer,))
        thread.start()
        with pytest.raises(WakeupError):
            consumer.poll(30)
        thread.join()
    assert "a second thread called this consumer" in str(errors[0])


def test_a_closed_consumer_raises_on_every_call(servers: str, topic: str) -> None:
    consumer = consumer_of(servers, topic)
    consumer.close()
    consumer.close()
    with pytest.raises(IllegalStateError, match="the consumer is closed"):
        consumer.poll(0)


def test_polling_without_an_assignment_is_an_error(servers: str) -> None:
    with (
        Consumer(bootstrap_servers=servers) as consumer,
        pytest.raises(IllegalStateError, match=r"call subscribe\(\) or assign\(\)"),
    ):
        consumer.poll(0)


@pytest.mark.parametrize(
    ("call", "argument"), [("subscribe", ["t"]), ("commit", None), ("commit_async", None), ("committed", [])]
)
def test_calls_that_need_a_group_raise_without_one(servers: str, call: str, argument: Any) -> None:
    with (
        Consumer(bootstrap_servers=servers) as consumer,
        pytest.raises(KafkaError, match=rf"INVALID_GROUP_ID: group.id is not set: {call}\(\) needs"),
    ):
        getattr(consumer, call)(argument)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the time for which an unknown topic may still appear."""
    monkeypatch.setattr(offset_fetcher, "UNKNOWN_GRACE", 0.2)


@pytest.mark.usefixtures("hasty")
def test_a_missing_topic_is_named(servers: str) -> None:
    nowhere = TopicPartition("there-is-no-such-topic", 0)
    with (
        Consumer(bootstrap_servers=servers, allow_auto_create_topics=False) as consumer,
        pytest.raises(UnknownTopicOrPartitionError, match="there-is-no-such-topic"),
    ):
        consumer.end_offsets([nowhere])


def test_the_position_in_a_missing_partition_raises_an_error_that_names_it(servers: str, topic: str) -> None:
    with Consumer(bootstrap_servers=servers) as consumer:
        consumer.assign([TopicPartition(topic, 7)])
        with pytest.raises(UnknownTopicOrPartitionError, match=r"has partitions 0, not 7"):
            consumer.position(TopicPartition(topic, 7), timeout=4)


@pytest.mark.usefixtures("hasty")
def test_a_missing_partition_is_named(servers: str, topic: str) -> None:
    with (
        Consumer(bootstrap_servers=servers) as consumer,
        pytest.raises(UnknownTopicOrPartitionError, match=r"has partitions 0, not 7"),
    ):
        consumer.end_offsets([TopicPartition(topic, 7)])


def test_a_lookup_has_a_timeout_of_its_own(servers: str, topic: str) -> None:
    with Consumer(bootstrap_servers=servers, allow_auto_create_topics=False) as consumer:
        consumer.end_offsets([TopicPartition(topic, 0)])  # has it connected
        with pytest.raises(KafkaTimeoutError, match=r"no offset of nowhere-0 within 0.5 s"):
            consumer.end_offsets([TopicPartition("nowhere", 0)], timeout=0.5)


@pytest.mark.behaviour("C2")
def test_a_partition_at_its_end_does_not_delay_the_others(
    servers: str, new_topic: NewTopicName, producer: Producer
) -> None:
    topic = new_topic(2)
    producer.send(topic, b"only", partition=0)
    for n in range(10):
        producer.send(topic, bytes(1000), partition=1, timestamp=n).result(10)
    settings = {"max_poll_records": 1, "max_partition_fetch_bytes": 3500, "fetch_max_wait_ms": 60_000}
    with consumer_of(servers, topic, 2, **settings) as consumer:
        started = time.monotonic()
        assert len(take(consumer, 11)) == 11
        assert time.monotonic() - started < 10


@pytest.mark.behaviour("C19")
def test_the_lag_is_the_difference_between_position_and_end(servers: str, topic: str, producer: Producer) -> None:
    fill(producer, topic, 3)
    tp = TopicPartition(topic, 0)
    with consumer_of(servers, topic) as consumer:
        assert consumer.current_lag(tp) is None
        consumer.poll(10)
        assert consumer.current_lag(tp) == 0


def test_ctrl_c_in_a_poll_has_a_short_traceback(servers: str, topic: str) -> None:
    with consumer_of(servers, topic) as consumer:
        consumer.poll(0)
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt) as raised:
            consumer.poll(30)
        timer.join()
    files = [entry.path.name for entry in raised.traceback if hasattr(entry.path, "name")]
    assert set(files) == {"test_consumer.py", "consumer.py"}
    assert raised.value.__suppress_context__
