from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from ottla import Consumer, Producer, TopicPartition
from ottla.client.producer import TableReceipt
from ottla.client.producer.config import CodecName
from ottla.client.producer.partitioner import choose_by_key
from ottla.errors import KafkaTimeoutError, RecordTooLargeError, SerializationError
from tests.client.conftest import NewTopicName, eventually


def read(servers: str, topic: str, count: int, partitions: int = 1) -> Any:
    """The first `count` records of a topic."""
    tables: list[pa.Table] = []
    with Consumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, index) for index in range(partitions)])

        def poll() -> bool:
            tables.append(consumer.poll_arrow(1, include_headers=True))
            return sum(t.num_rows for t in tables) >= count

        eventually(poll)
    return pa.concat_tables(tables)


def send(servers: str, topic: str, table: Any, **columns: Any) -> dict[TopicPartition, list[range]]:
    with Producer(bootstrap_servers=servers) as producer:
        receipt = producer.send_table(topic, table, **columns)
        assert receipt.rows == table.num_rows
        return receipt.result(20)


def test_the_rows_of_a_table_arrive_as_records(servers: str, topic: str) -> None:
    table = pa.table({"key": [b"a", None, b"c"], "value": [b"1", b"2", None]})
    assert send(servers, topic, table) == {TopicPartition(topic, 0): [range(3)]}
    rows = read(servers, topic, 3)
    assert rows.column("key").to_pylist() == [b"a", None, b"c"]
    assert rows.column("value").to_pylist() == [b"1", b"2", None]
    now = datetime.now(UTC).timestamp()
    assert all(abs(now - t.timestamp()) < 60 for t in rows.column("timestamp").to_pylist())


def test_columns_are_named_by_the_arguments(servers: str, topic: str) -> None:
    headers = pa.array(
        [[{"key": "h", "value": b"x"}], None], pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    )
    table = pa.table(
        {"k": ["a", "b"], "v": ["1", "2"], "at": pa.array([1000, None], pa.timestamp("ms", "UTC")), "h": headers}
    )
    send(servers, topic, table, key="k", value="v", timestamp="at", headers="h")
    rows = read(servers, topic, 2)
    assert rows.column("key").to_pylist() == [b"a", b"b"]
    assert rows.column("timestamp").to_pylist()[0] == datetime.fromtimestamp(1, UTC)
    assert rows.column("timestamp").to_pylist()[1] > datetime(2024, 1, 1, tzinfo=UTC)
    assert rows.column("headers").to_pylist() == [[{"key": "h", "value": b"x"}], None]


@pytest.mark.behaviour("P8")
def test_a_key_in_a_table_gets_the_same_partition_as_a_single_record(servers: str, new_topic: NewTopicName) -> None:
    topic = new_topic(5)
    keys = [b"key-%d" % n for n in range(200)]
    send(servers, topic, pa.table({"key": keys, "value": keys}))
    rows = read(servers, topic, 200, 5).to_pylist()
    assert len(rows) == 200
    for row in rows:
        assert row["partition"] == choose_by_key(topic, row["key"], None, 5)
    for partition in range(5):
        mine = [keys.index(row["key"]) for row in rows if row["partition"] == partition]
        assert mine == sorted(mine), "the order within a partition is the table's"


def test_the_partition_may_be_a_column_and_where_it_is_null_the_key_decides(
    servers: str, new_topic: NewTopicName
) -> None:
    topic = new_topic(3)
    table = pa.table({"key": [b"k"] * 4, "value": [b"0", b"1", b"2", b"3"], "p": pa.array([2, 0, None, 1], pa.int32())})
    send(servers, topic, table, partition="p")
    found = {row["value"]: row["partition"] for row in read(servers, topic, 4, 3).to_pylist()}
    assert found == {b"0": 2, b"1": 0, b"2": choose_by_key(topic, b"k", None, 3), b"3": 1}


def test_a_custom_partitioner_is_called_for_each_row(servers: str, new_topic: NewTopicName) -> None:
    topic = new_topic(3)
    with Producer(bootstrap_servers=servers, partitioner_class=lambda t, k, v, n: int(v) % n) as producer:
        producer.send_table(topic, pa.table({"value": ["0", "1", "2", "4"]})).result(20)
    found = {row["value"]: row["partition"] for row in read(servers, topic, 4, 3).to_pylist()}
    assert found == {b"0": 0, b"1": 1, b"2": 2, b"4": 1}


def test_rows_without_a_key_are_spread_by_whole_batches(servers: str, new_topic: NewTopicName) -> None:
    topic = new_topic(4)
    offsets = send(servers, topic, pa.table({"value": [bytes(1000)] * 5000}))
    assert len(offsets) > 1
    assert sum(len(span) for spans in offsets.values() for span in spans) == 5000


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.array([b"a", b"b", b"a"], pa.large_binary()),
        pa.array(["a", "b", "a"], pa.large_string()),
        pa.chunked_array([["a"], ["b", "a"]]),
        pa.array(["x", "a", "b", "a"])[1:],
    ],
    ids=["dictionary", "large_binary", "large_string", "chunked", "sliced"],
)
def test_any_kind_of_strings_will_do(servers: str, topic: str, values: Any) -> None:
    send(servers, topic, pa.table({"value": values}))
    assert read(servers, topic, 3).column("value").to_pylist() == [b"a", b"b", b"a"]


@pytest.mark.behaviour("P9")
@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_tables_are_compressed_too(servers: str, topic: str, codec: CodecName) -> None:
    with Producer(bootstrap_servers=servers, compression_type=codec) as producer:
        producer.send_table(topic, pa.table({"value": [b"v" * 1000] * 100}))
    assert read(servers, topic, 100).column("value").to_pylist() == [b"v" * 1000] * 100


def test_a_record_batch_is_a_table_too(servers: str, topic: str) -> None:
    batch = pa.RecordBatch.from_pydict({"value": [b"v"]})
    assert send(servers, topic, batch) == {TopicPartition(topic, 0): [range(1)]}


def test_an_empty_table_sends_no_record(servers: str, topic: str) -> None:
    assert send(servers, topic, pa.table({"value": pa.array([], pa.binary())})) == {}


def test_a_row_that_is_too_large_fails_its_own_batch_and_no_other(servers: str, topic: str) -> None:
    with Producer(bootstrap_servers=servers, max_request_size=100_000) as producer:
        receipt = producer.send_table(topic, pa.table({"value": [b"1", bytes(200_000), b"3"]}))
        with pytest.raises(RecordTooLargeError, match=r"max\.request\.size = 100000"):
            receipt.result(20)
        producer.flush(20)
    assert read(servers, topic, 2).column("value").to_pylist() == [b"1", b"3"]


def test_batches_too_large_for_their_topic_are_split(servers: str, new_topic: NewTopicName) -> None:
    topic = new_topic(max_message_bytes=10_000)
    offsets = send(servers, topic, pa.table({"value": [bytes(100)] * 2000}))
    assert sorted(n for spans in offsets.values() for span in spans for n in span) == list(range(2000))


@pytest.mark.parametrize(
    ("table", "columns", "words"),
    [
        ([1, 2], {}, "a list is not a table"),
        (pa.table({"v": ["a"]}), {}, "no column named 'value'"),
        (pa.table({"value": [1.5]}), {}, "value is double; cast it"),
        (pa.table({"value": ["a"]}), {"key": "k"}, "no column named 'k'"),
        (pa.table({"value": ["a"], "p": ["x"]}), {"partition": "p"}, "no integer column 'p'"),
    ],
)
def test_an_invalid_table_is_a_clear_error(servers: str, topic: str, table: Any, columns: Any, words: str) -> None:
    with Producer(bootstrap_servers=servers) as producer, pytest.raises(SerializationError, match=words):
        producer.send_table(topic, table, **columns)


def test_a_missing_partition_is_named(servers: str, topic: str) -> None:
    with Producer(bootstrap_servers=servers) as producer, pytest.raises(ValueError, match="partition 7 in column 'p'"):
        producer.send_table(topic, pa.table({"value": ["a", "b"], "p": [0, 7]}), partition="p")


def test_a_receipt_can_be_read_batch_by_batch(servers: str, topic: str) -> None:
    with Producer(bootstrap_servers=servers) as producer:
        receipt = producer.send_table(topic, pa.table({"value": [bytes(1000)] * 2000}))
        offsets = [future.result(20).offset for future in receipt.futures]
        assert offsets[0] == 0
        assert offsets == sorted(offsets)
        assert len(offsets) > 2
        assert receipt.done()
        assert repr(receipt) == f"TableReceipt(2000 rows in {len(offsets)} batches)"


def test_waiting_for_a_receipt_has_a_timeout() -> None:
    from ottla.client.producer.produce_request_result import ProduceRequestResult

    receipt = TableReceipt()
    receipt.add(ProduceRequestResult("t", 0), 10)
    assert not receipt.done()
    with pytest.raises(KafkaTimeoutError):
        receipt.result(0.01)


def test_acks_0_has_no_offsets_to_report(servers: str, topic: str) -> None:
    with Producer(bootstrap_servers=servers, acks=0) as producer:
        receipt = producer.send_table(topic, pa.table({"value": ["a"]}))
        assert receipt.result(20) == {TopicPartition(topic, 0): []}
