"""Rows that cannot be written, and what becomes of them; without Spark and without a broker."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from ottla.client.producer.producer_batch import upper_bound_bytes
from ottla.errors import ErrorCode, KafkaError, KafkaTimeoutError, NoBrokersAvailableError, error_for
from ottla.spark.sink.dead_letters import PREFIX, DeadLetterRecord, build_dead_letter
from ottla.spark.sink.refusals import RefusedRow, split_rows
from ottla.spark.sink.sink_rows import SinkColumns, weigh

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


class Cluster:
    """Topics of two partitions, but for `gone`, that take 300 bytes."""

    def partitions(self, topic: str) -> int:
        if topic == "gone":
            raise KafkaTimeoutError("topic 'gone' did not appear")
        if topic == "away":
            raise NoBrokersAvailableError("no Kafka broker answered")
        if topic == "secret":
            raise error_for(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "DESCRIBE of topic 'secret'")
        return 2

    def limit(self, topic: str) -> tuple[int, str]:
        return 300, "max.message.bytes"

    def has_required_keys(self, topic: str) -> bool:
        return topic == "table"


def judged(option: str | None = "t", **columns: Any) -> tuple[dict[str, list[Any]], list[RefusedRow]]:
    """The values that are written to each topic, and what is refused."""
    batch = pa.record_batch(columns)
    groups, refusals = split_rows(batch, option, Cluster())
    return {group.topic: group.rows.column("value").to_pylist() for group in groups}, refusals


def test_valid_rows_are_sent_unchanged() -> None:
    assert judged(value=pa.array(["a", None, "c"])) == ({"t": ["a", None, "c"]}, [])
    assert judged(value=pa.array([], pa.string())) == ({}, [])


def test_rows_find_their_topics_in_their_order() -> None:
    topics = pa.array(["x", "y", "x", "x"])
    assert judged(None, topic=topics, value=pa.array(list("abcd"))) == ({"x": ["a", "c", "d"], "y": ["b"]}, [])


def test_rows_without_a_key_are_refused_for_a_compacted_topic() -> None:
    written, refusals = judged("table", key=pa.array(["a", None, ""]), value=pa.array(["x", "y", None]))
    assert written == {"table": ["x", None]}
    message = "it has no key, and 'table' is compacted, so records need a key; set one"
    assert refusals == [RefusedRow(1, "table", message)]
    assert judged("table", value=pa.array(["x"])) == ({}, [RefusedRow(0, "table", message)])


def test_a_topic_of_the_query_that_is_forbidden_is_not_a_fault_of_its_rows() -> None:
    with pytest.raises(KafkaError, match="DESCRIBE of topic 'secret'; no rule"):
        judged("secret", value=pa.array(["a"]))


@pytest.mark.parametrize(
    ("columns", "row", "reason"),
    [
        ({"topic": ["x", None, "x"]}, 1, "it has no topic; set column 'topic'"),
        ({"topic": ["x", "a/b", "x"]}, 1, "'a/b' is not a valid topic name"),
        ({"topic": ["..", "x", "x"]}, 0, "'..' is not a valid topic name"),
        ({"topic": ["x", "x", "gone"]}, 2, "topic 'gone' did not appear"),
        ({"topic": ["x", "secret", "x"]}, 1, "DESCRIBE of topic 'secret'"),
        ({"partition": pa.array([0, None, 2], pa.int32())}, 2, "partition 2 does not exist: 't' has 0 to 1"),
        ({"partition": pa.array([-1, 0, 1], pa.int32())}, 0, "partition -1 does not exist"),
        ({"timestamp": pa.array([0, None, -1], pa.timestamp("us", "UTC"))}, 2, "is before 1970"),
        ({"value": ["a", "x" * 300, "c"]}, 1, "more than max.message.bytes = 300 of 't'; raise that"),
        ({"key": ["x" * 300, "b", None]}, 0, "it takes up to 39"),
        ({"headers": pa.array([None, [], [("k", b"x" * 300)]], HEADERS)}, 2, "more than max.message.bytes"),
        ({"headers": pa.array([[("k", b"v")], [(None, b"v")], None], HEADERS)}, 1, "one of its headers has no key"),
    ],
)
def test_a_row_that_cannot_be_written_is_reported_with_its_place(
    columns: dict[str, Any], row: int, reason: str
) -> None:
    option = None if "topic" in columns else "t"
    written, refusals = judged(option, **{"value": pa.array(list("abc")), **columns})
    ((place, _, reported),) = refusals
    assert place == row
    assert reason in reported
    assert [len(rows) for rows in written.values()] == [2]


def test_an_unavailable_broker_is_not_an_error_of_a_row() -> None:
    with pytest.raises(NoBrokersAvailableError, match=r"^no Kafka broker answered"):
        judged("away", value=pa.array(["a"]))


def test_many_faults_are_each_reported_once_and_in_order() -> None:
    topics, values = pa.array(["x", None, "..", "x", None]), pa.array(["a", "b", "c", "d" * 400, "e"])
    written, refusals = judged(None, topic=topics, value=values)
    assert written == {"x": ["a"]}
    assert [refusal.row for refusal in refusals] == [1, 2, 3, 4]


def letter(row: dict[str, Any], limit: int = 10_000) -> DeadLetterRecord:
    return build_dead_letter(row, topic="t", reason="because", task=3, number=17, query="q", limit=limit)


def test_a_dead_letter_is_the_row_with_connect_s_headers() -> None:
    found = letter({"key": "k", "value": b"v", "headers": [{"key": "own", "value": b"1"}], "partition": 9})
    assert (found.key, found.value, found.headers[0]) == (b"k", b"v", ("own", b"1"))
    headers = {name.removeprefix(PREFIX): text for name, text in found.headers[1:]}
    assert headers["topic"] == b"t"
    assert (headers["partition"], headers["offset"], headers["task.id"]) == (b"3", b"17", b"3")
    assert (headers["connector.name"], headers["stage"], headers["exception.message"]) == (
        b"q",
        b"TASK_PUT",
        b"because",
    )
    assert headers["exception.class.name"] == b"ottla.spark.sink.refusals.RowError"


@pytest.mark.parametrize("row", [{"key": b"k", "value": b"v" * 9000}, {"key": b"k" * 9000, "value": b"v" * 9000}])
@pytest.mark.parametrize("headers", [[], [{"key": "h", "value": b"x" * 9000}]])
def test_a_dead_letter_that_is_too_large_is_truncated_and_marked_as_truncated(
    row: dict[str, Any], headers: list[Any]
) -> None:
    found = letter({**row, "headers": headers}, limit=4000)
    assert upper_bound_bytes(found.key, found.value, tuple(found.headers)) <= 4000
    reported = dict(found.headers)[PREFIX + "exception.message"] or b""
    assert reported.startswith(b"because (cut here from ")


def test_a_weight_knows_rows_and_bytes_but_not_their_order() -> None:
    columns = SinkColumns(frozenset({"key", "value"}))
    data: dict[str, Any] = {"key": pa.array([b"a", None, b"b"]), "value": pa.array(["xy", "z", None])}
    whole, other = pa.record_batch(data), pa.record_batch({**data, "value": pa.array(["xy", "y", None])})
    turned = whole.take(pa.array([2, 0, 1]))
    assert (
        weigh(whole, columns)
        == weigh(turned, columns)
        == weigh(whole.slice(0, 1), columns) + weigh(whole.slice(1), columns)
    )
    assert weigh(whole, columns) == (3, 5, sum(b"abxyz"))
    assert weigh(other, columns) != weigh(whole, columns)
