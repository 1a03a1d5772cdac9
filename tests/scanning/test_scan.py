"""`ottla.scan` and `ottla.scan_duckdb` against a broker: their rows, and what they fetch for them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import polars as pl
import pytest

import ottla
from ottla import Consumer, Producer, TopicPartition
from ottla.errors import ConfigError, KafkaError
from ottla.scanning import TopicScan
from tests.scanning.conftest import COUNT, FIRST_MS, PARTITIONS, TOPIC, Fetches

FIRST = datetime.fromtimestamp(FIRST_MS / 1000, UTC)
T0, T1, T2 = (TopicPartition(TOPIC, number) for number in range(PARTITIONS))


def consumed(servers: str) -> list[tuple[int, int, bytes]]:
    """Read the topic record by record."""
    rows: list[tuple[int, int, bytes]] = []
    with Consumer(
        bootstrap_servers=servers, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([T0, T1, T2])
        while len(rows) < COUNT * PARTITIONS:
            rows += [(one.partition, one.offset, one.value or b"") for one in consumer.poll(10)]
    return sorted(rows)


def test_a_scan_returns_the_records_that_a_consumer_returns(servers: str) -> None:
    frame = ottla.scan(TOPIC, bootstrap_servers=servers).collect()
    assert frame.columns == ["key", "value", "topic", "partition", "offset", "timestamp", "timestamp_type"]
    assert sorted(frame.select("partition", "offset", "value").rows()) == consumed(servers)
    assert frame["timestamp"].min() == FIRST


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_a_count_and_an_aggregation_are_right_with_each_engine(servers: str, engine: Any) -> None:
    lazy = ottla.scan(TOPIC, bootstrap_servers=servers)
    assert lazy.select(pl.len()).collect(engine=engine).item() == COUNT * PARTITIONS
    sums = lazy.group_by("partition").agg(pl.col("value").cast(pl.String).cast(pl.Int64).sum()).collect(engine=engine)
    assert sorted(sums.rows()) == [(number, sum(range(COUNT))) for number in range(PARTITIONS)]


FILTERS = {
    "a partition": (pl.col("partition") == 1, {T1: 0}),
    "partitions in a list": (pl.col("partition").is_in([0, 2]), {T0: 0, T2: 0}),
    "a computed partition": (pl.col("partition") % 2 == 1, {T1: 0}),
    "a topic": (pl.col("topic") == "another", {}),
    "offsets": ((pl.col("offset") >= 990) & (pl.col("offset") < 995), {T0: 990, T1: 990, T2: 990}),
    "offsets on the other side": (pl.col("offset") > 990, {T0: 991, T1: 991, T2: 991}),
    "offsets between": (pl.col("offset").is_between(990, 992, closed="right"), {T0: 991, T1: 991, T2: 991}),
    "one offset of a partition": ((pl.col("offset") == 7) & (pl.col("partition") == 2), {T2: 7}),
    "an offset of each partition": (
        ((pl.col("partition") == 0) & (pl.col("offset") >= 900))
        | ((pl.col("partition") == 1) & (pl.col("offset") >= 950)),
        {T0: 900, T1: 950},
    ),
    "a time": (pl.col("timestamp") >= FIRST + timedelta(seconds=980), {T0: 980, T1: 980, T2: 980}),
    "a time within a millisecond": (
        pl.col("timestamp") > FIRST + timedelta(seconds=980, microseconds=1),
        {T0: 981, T1: 981, T2: 981},
    ),
    "a time after all records": (pl.col("timestamp") > FIRST + timedelta(days=20_000), {}),
    "other columns as well": ((pl.col("value") == b"991") & (pl.col("offset") > 800), {T0: 801, T1: 801, T2: 801}),
    "an offset or another column": ((pl.col("offset") > 998) | (pl.col("value") == b"0"), {T0: 0, T1: 0, T2: 0}),
    "not an offset": (~(pl.col("offset") < 900), {T0: 900, T1: 900, T2: 900}),
    "an unequal offset": (pl.col("offset") != 5, {T0: 0, T1: 0, T2: 0}),
    "an earlier time": (pl.col("timestamp") < FIRST + timedelta(seconds=2), {T0: 0, T1: 0, T2: 0}),
}


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_moves_the_first_fetch_and_leaves_the_result_as_it_is(
    servers: str, fetches: Fetches, name: str
) -> None:
    wanted, first = FILTERS[name]
    found = ottla.scan(TOPIC, bootstrap_servers=servers).filter(wanted).select("partition", "offset").collect()
    assert fetches.first() == first
    whole = ottla.scan(TOPIC, bootstrap_servers=servers).collect().filter(wanted).select("partition", "offset")
    assert sorted(found.rows()) == sorted(whole.rows())


def test_a_filter_by_a_python_function_reads_everything(servers: str, fetches: Fetches) -> None:
    last = {998, 999}
    wanted = pl.col("offset").map_elements(last.__contains__, return_dtype=pl.Boolean)
    found = ottla.scan(TOPIC, bootstrap_servers=servers).filter(wanted).collect()
    assert found.height == 2 * PARTITIONS
    assert fetches.first() == {T0: 0, T1: 0, T2: 0}


def test_only_the_columns_of_the_query_are_made(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    poll = Consumer.poll_arrow

    def noted(self: Any, *arguments: Any, **keywords: Any) -> Any:
        asked.append(keywords["columns"])
        return poll(self, *arguments, **keywords)

    monkeypatch.setattr(Consumer, "poll_arrow", noted)
    ottla.scan(TOPIC, bootstrap_servers=servers).filter(pl.col("offset") > 10).select("value").collect()
    assert {frozenset(names) for names in asked} == {frozenset({"value", "offset"})}


def test_a_limit_ends_the_read(servers: str, fetches: Fetches) -> None:
    lazy = ottla.scan(TOPIC, bootstrap_servers=servers, max_partition_fetch_bytes=2000)
    assert lazy.head(5).collect().height == 5
    assert lazy.filter(pl.col("offset") > 3).head(5).collect()["offset"].min() == 4
    assert lazy.head(0).collect().height == 0
    later = [offset for trace in fetches.traces for m in trace for offset in getattr(m.event, "offsets", {}).values()]
    assert max(later) < COUNT  # the read ended before the topic did


def test_offsets_times_and_partitions_bound_a_scan(servers: str, fetches: Fetches) -> None:
    lazy = ottla.scan(TOPIC, bootstrap_servers=servers, partitions=[0, 1], start={T0: 5}, end={T0: 7, T1: 1})
    assert sorted(lazy.select("partition", "offset").collect().rows()) == [(0, 5), (0, 6), (1, 0)]
    assert fetches.first() == {T0: 5, T1: 0}
    until = FIRST + timedelta(seconds=12)
    timed = ottla.scan(TOPIC, bootstrap_servers=servers, start_time=FIRST_MS + 10_000, end_time=until, partitions=[2])
    assert timed.select("offset").collect()["offset"].to_list() == [10, 11]


def test_records_after_the_start_of_a_read_are_left_to_the_next(servers: str) -> None:
    lazy = ottla.scan("empty", bootstrap_servers=servers)
    assert lazy.collect().height == 0
    with Producer(bootstrap_servers=servers) as producer:
        producer.send("empty", b"1", headers=[("h", b"x")]).result(10)
    assert lazy.collect()["value"].to_list() == [b"1"]
    with_headers = ottla.scan("empty", bootstrap_servers=servers, include_headers=True).collect()
    assert with_headers["headers"].to_list() == [[{"key": "h", "value": b"x"}]]


def test_uncommitted_records_are_read_on_request(servers: str) -> None:
    lazy = ottla.scan(TOPIC, {"bootstrap.servers": servers}, isolation_level="read_uncommitted")
    assert lazy.filter(pl.col("value") == b"aborted").collect().height == 1


def test_a_relation_of_duckdb_can_be_executed_again(servers: str, fetches: Fetches) -> None:
    with duckdb.connect() as connection:
        relation = ottla.scan_duckdb(TOPIC, bootstrap_servers=servers, connection=connection, start={T0: 998, T1: 999})
        assert relation.filter("partition < 2").count("*").fetchall() == [(3,)]
        assert relation.filter("partition = 2").aggregate('min("offset"), max(value)').fetchall() == [(0, b"999")]
    assert fetches.first() == {T0: 998, T1: 999, T2: 0}


def test_duckdb_gets_the_columns_and_partitions_that_are_named(servers: str, fetches: Fetches) -> None:
    with duckdb.connect() as connection:
        relation = ottla.scan_duckdb(
            TOPIC, bootstrap_servers=servers, connection=connection, columns=["offset"], partitions=[1]
        )
        assert relation.columns == ["offset"]
        assert relation.aggregate("count(*)").fetchall() == [(COUNT,)]
    assert set(fetches.first()) == {T1}


def test_a_scan_is_an_arrow_stream_for_other_libraries(servers: str) -> None:
    topic_scan = TopicScan(TOPIC, bootstrap_servers=servers, columns=["offset"], partitions=[0])
    assert topic_scan.reader().read_all().num_rows == COUNT
    assert duckdb.execute('select max("offset") from topic_scan').fetchall() == [(COUNT - 1,)]
    assert repr(topic_scan) == "TopicScan(orders)"


def test_mistakes_are_sentences(servers: str) -> None:
    with pytest.raises(KafkaError, match="there is no topic 'nowhere'"):
        TopicScan("nowhere", bootstrap_servers=servers).reader().read_all()
    with pytest.raises(ConfigError, match="invalid topics \\[\\]: expected a name"):
        ottla.scan([], bootstrap_servers=servers)
    with pytest.raises(ConfigError, match="start_time = 2026-01-01 00:00:00 has no time zone"):
        ottla.scan(TOPIC, bootstrap_servers=servers, start_time=datetime(2026, 1, 1))
    with pytest.raises(ConfigError, match="end_time = 'now': expected a datetime"):
        ottla.scan(TOPIC, bootstrap_servers=servers, end_time="now")  # type: ignore[arg-type]


def test_a_partition_that_no_topic_has_is_an_error(servers: str) -> None:
    with pytest.raises(
        ConfigError, match=f"invalid partition 9 of {TOPIC}: expected numbers from 0 to {PARTITIONS - 1}"
    ):
        ottla.scan(TOPIC, bootstrap_servers=servers, partitions=[0, 9]).collect()
