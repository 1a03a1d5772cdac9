from __future__ import annotations

import time
from collections.abc import Callable, Sized

import pytest

from ottla import Consumer, Producer, TopicPartition
from ottla.client.consumer import RangeReader
from ottla.errors import KafkaTimeoutError, OffsetOutOfRangeError
from tests.client.conftest import NewTopicName, eventually

COUNT = 5000


@pytest.fixture(scope="module")
def tp(servers: str, filled: str) -> TopicPartition:
    return TopicPartition(filled, 0)


@pytest.fixture(scope="module")
def filled(servers: str, module_topic: str) -> str:
    """A topic with COUNT records in many batches."""
    with Producer(bootstrap_servers=servers, batch_size=2000) as producer:
        for n in range(COUNT):
            producer.send(module_topic, b"value %d" % n, key=b"%d" % n, headers={"n": b"%d" % n}, timestamp=1000 + n)
    return module_topic


def offsets(reader: RangeReader) -> list[int]:
    return [offset for columns in reader.columns() for offset in columns.offsets]


@pytest.mark.parametrize(("start", "end"), [(0, COUNT), (0, 1), (1234, 1235), (4000, COUNT), (17, 4321)])
def test_exactly_the_offsets_of_the_span_are_read(servers: str, tp: TopicPartition, start: int, end: int) -> None:
    with RangeReader({"bootstrap.servers": servers}, tp, start, end) as reader:
        assert offsets(reader) == list(range(start, end))


def test_an_empty_range_has_no_records(servers: str, tp: TopicPartition) -> None:
    with RangeReader({"bootstrap.servers": servers}, tp, 10, 10) as reader:
        assert offsets(reader) == []


def test_small_fetches_read_the_same(servers: str, tp: TopicPartition) -> None:
    with RangeReader({"bootstrap.servers": servers, "max.partition.fetch.bytes": 3000}, tp, 5, 1000) as reader:
        assert offsets(reader) == list(range(5, 1000))


def test_record_batches_have_the_requested_rows_and_timestamp_unit(servers: str, tp: TopicPartition) -> None:
    with RangeReader({"bootstrap.servers": servers}, tp, 100, 400) as reader:
        batches = list(reader.batches("us", with_headers=True, max_rows=128))
    assert max(batch.num_rows for batch in batches) <= 128
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert [row["offset"] for row in rows] == list(range(100, 400))
    assert rows[0]["value"] == b"value 100"
    assert rows[0]["key"] == b"100"
    assert rows[0]["headers"] == [{"key": "n", "value": b"100"}]
    assert str(batches[0].schema.field("timestamp").type) == "timestamp[us, tz=UTC]"
    assert rows[0]["timestamp"].timestamp() == 1.1


def test_deleted_offsets_are_named_with_the_available_range(servers: str, tp: TopicPartition) -> None:
    with (
        RangeReader({"bootstrap.servers": servers}, tp, COUNT + 10, COUNT + 20) as reader,
        pytest.raises(OffsetOutOfRangeError) as caught,
    ):
        offsets(reader)
    for fact in (str(tp), f"offset {COUNT + 10}", f"{COUNT + 10} to {COUNT + 20}", f"0 to {COUNT}"):
        assert fact in str(caught.value)


def test_an_end_offset_that_never_appears_is_waited_for_until_the_timeout(servers: str, tp: TopicPartition) -> None:
    settings = {"bootstrap.servers": servers, "default.api.timeout.ms": 700}
    with (
        RangeReader(settings, tp, COUNT - 1, COUNT + 5) as reader,
        pytest.raises(
            KafkaTimeoutError, match=rf"no records received at offset {COUNT} of range {COUNT - 1} to {COUNT + 5}"
        ),
    ):
        offsets(reader)


def test_a_reset_policy_of_the_users_does_not_make_losses_silent(servers: str, tp: TopicPartition) -> None:
    settings = {"bootstrap.servers": servers, "auto.offset.reset": "earliest"}
    with RangeReader(settings, tp, COUNT + 1, COUNT + 2) as reader, pytest.raises(OffsetOutOfRangeError):
        offsets(reader)


@pytest.mark.parametrize(("start", "end"), [(0, 4), (1, 3), (3, 4)], ids=["all of it", "records", "the marker"])
def test_a_span_without_a_visible_record_is_read_without_waiting(
    servers: str, aborted: TopicPartition, start: int, end: int
) -> None:
    began = time.monotonic()
    with RangeReader(
        {"bootstrap.servers": servers, "isolation.level": "read_committed"}, aborted, start, end
    ) as reader:
        assert offsets(reader) == []
    assert time.monotonic() - began < 30, "default.api.timeout.ms is sixty seconds"


@pytest.mark.behaviour("C3")
@pytest.mark.parametrize("poll", [Consumer.poll, Consumer.poll_columns], ids=["rows", "columns"])
def test_poll_returns_when_the_position_has_passed_invisible_records(
    servers: str, aborted: TopicPartition, poll: Callable[[Consumer, float], Sized]
) -> None:
    began = time.monotonic()
    with Consumer(bootstrap_servers=servers, isolation_level="read_committed") as consumer:
        consumer.assign([aborted])
        consumer.seek(aborted, 0)
        assert len(poll(consumer, 60)) == 0
        assert consumer.position(aborted) == 4
        assert time.monotonic() - began < 30
        assert len(poll(consumer, 0.05)) == 0, "once, and not over and over"
    assert not consumer._core.fetcher.take_skipped()


@pytest.fixture
def aborted(servers: str, new_topic: NewTopicName) -> TopicPartition:
    """Three aborted records and their abort marker."""
    place = TopicPartition(new_topic(), 0)
    with Producer(bootstrap_servers=servers, transactional_id=place.topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        for _ in range(3):
            producer.send(place.topic, b"nobody sees this")
        producer.flush()
        producer.abort_transaction()
    with Consumer(bootstrap_servers=servers) as consumer:
        eventually(lambda: consumer.end_offsets([place]) == {place: 4})
    return place


def test_the_reader_closes_itself_at_the_end(servers: str, new_topic: NewTopicName) -> None:
    reader = RangeReader({"bootstrap.servers": servers}, TopicPartition(new_topic(), 0), 0, 0)
    assert offsets(reader) == []
    assert reader._consumer._core.closed
