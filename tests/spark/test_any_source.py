"""Data of any Spark source written to a topic: files, tables, databases, streams, each row once and unchanged. Where
possible the sources are written by another library than Spark, so that their content is known without Spark.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyarrow import orc, parquet
from pyspark.sql import DataFrame

from tests.spark.topics import Topics

pytestmark = pytest.mark.behaviour("D1")
SCHEMA = "n bigint, place string, delay double"
FIELDS: list[pa.Field[Any]] = [
    pa.field("n", pa.int64()),
    pa.field("place", pa.string()),
    pa.field("delay", pa.float64()),
]
Rows = list[dict[str, Any]]
FILES = 3


def rows() -> Rows:
    """Three hundred rows, with letters, quotes and line ends that a careless source or sink would spoil; some without delay."""
    places = ["Zürich", 'the "Loop"', "a, b", "서울", "two\nlines", "back\\slash"]
    return [{"n": n, "place": places[n % 6], "delay": None if n % 7 == 0 else n / 4} for n in range(300)]


def thirds() -> list[Rows]:
    return [rows()[first::FILES] for first in range(FILES)]


def write_json(path: Path, wanted: Rows) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in wanted), encoding="utf-8")


def write_csv(path: Path, wanted: Rows) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["n", "place", "delay"])
        writer.writeheader()
        writer.writerows(wanted)


def write_parquet(path: Path, wanted: Rows) -> None:
    parquet.write_table(table(wanted), path)


def write_orc(path: Path, wanted: Rows) -> None:
    orc.write_table(table(wanted), path)


def table(wanted: Rows) -> pa.Table:
    return pa.Table.from_pylist(wanted, schema=pa.schema(FIELDS))


FORMATS: dict[str, tuple[Callable[[Path, Rows], None], dict[str, str]]] = {
    "json": (write_json, {}),
    "csv": (write_csv, {"header": "true", "multiLine": "true", "escape": '"'}),
    "parquet": (write_parquet, {}),
    "orc": (write_orc, {}),
}
"""How each kind of file is written here, and read by Spark."""


def folder(kind: str, where: Path) -> str:
    """The rows in a folder with three files."""
    (where / "in").mkdir()
    for number, wanted in enumerate(thirds()):
        FORMATS[kind][0](where / "in" / f"{number}.{kind}", wanted)
    return str(where / "in")


def records_of(frame: DataFrame) -> DataFrame:
    """A record of each row: its number as key, all of it as JSON."""
    return frame.selectExpr("cast(n as string) as key", "to_json(struct(*)) as value")


def write(topics: Topics, frame: DataFrame) -> str:
    """Write a batch to a new topic."""
    topic = topics.create("out", partitions=3)
    records_of(frame).write.format("ottla").options(**topics.options({"topic": topic})).mode("append").save()
    return topic


def stream(topics: Topics, frame: DataFrame, where: Path, **options: str) -> tuple[str, int]:
    """Write a stream to a new topic up to its current end; return the number of batches."""
    topic = topics.create("out", partitions=3)
    query = (
        frame.writeStream.format("ottla")
        .options(**topics.options({"topic": topic, **options}), checkpointLocation=str(where / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    return topic, sum(1 for progress in query.recentProgress if progress["numInputRows"])


def assert_holds(topics: Topics, topic: str, wanted: Rows) -> None:
    """Each row is a record of the topic, once, and nothing else is."""
    found = [(record.key.decode(), json.loads(record.value)) for record in topics.records(topic)]
    reported = [(str(row["n"]), {name: value for name, value in row.items() if value is not None}) for row in wanted]
    assert Counter(map(repr, found)) == Counter(map(repr, reported))


@pytest.mark.parametrize("kind", FORMATS)
def test_files_are_sent_to_a_topic(kind: str, topics: Topics, tmp_path: Path) -> None:
    reader = topics.spark.read.schema(SCHEMA).options(**FORMATS[kind][1])
    topic = write(topics, reader.format(kind).load(folder(kind, tmp_path)))
    assert_holds(topics, topic, rows())


@pytest.mark.parametrize("kind", FORMATS)
def test_files_are_sent_to_a_topic_as_a_stream_and_once_each(kind: str, topics: Topics, tmp_path: Path) -> None:
    reader = topics.spark.readStream.schema(SCHEMA).options(**FORMATS[kind][1], maxFilesPerTrigger=1)
    frame = records_of(reader.format(kind).load(folder(kind, tmp_path)))
    topic, batches = stream(topics, frame, tmp_path, deliveryGuarantee="exactly_once")
    assert batches == FILES
    assert_holds(topics, topic, rows())


def test_lines_of_text_are_sent_to_a_topic_unchanged(topics: Topics, tmp_path: Path) -> None:
    lines = [f"{n} Zürich" for n in range(100)]
    (tmp_path / "lines.txt").write_text("\n".join(lines), encoding="utf-8")
    topic, _ = stream(topics, topics.spark.readStream.text(str(tmp_path / "lines*")), tmp_path)
    assert sorted(topics.values(topic)) == sorted(lines)


def test_a_sql_view_is_written_to_a_topic(topics: Topics) -> None:
    topics.spark.range(5000).createOrReplaceTempView("numbers")
    topic = write(topics, topics.spark.sql("select id % 1000 as n, count(*) as place from numbers group by 1"))
    assert_holds(topics, topic, [{"n": n, "place": 5} for n in range(1000)])


def test_a_pandas_dataframe_is_written_to_a_topic(topics: Topics) -> None:
    frame = pd.DataFrame([(row["n"], row["place"]) for row in rows()], columns=["n", "place"])
    topic = write(topics, topics.spark.createDataFrame(frame))
    assert_holds(topics, topic, [{"n": row["n"], "place": row["place"]} for row in rows()])


def test_a_database_table_is_written_to_a_topic(topics: Topics) -> None:
    """The database is Derby, which is part of Spark."""
    where = {"url": "jdbc:derby:memory:places;create=true", "driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver"}
    held = topics.spark.createDataFrame([tuple(row.values()) for row in rows()], SCHEMA)
    held.write.format("jdbc").options(**where, dbtable="held").mode("overwrite").save()
    topic = write(topics, topics.spark.read.format("jdbc").options(**where, dbtable="held").load().toDF(*held.columns))
    assert_holds(topics, topic, rows())


def test_a_delta_table_is_written_to_a_topic(topics: Topics, tmp_path: Path) -> None:
    for wanted in thirds():
        write_deltalake(str(tmp_path / "table"), table(wanted), mode="append")
    topic = write(topics, topics.spark.read.format("ottla_delta").load(str(tmp_path / "table")))
    assert_holds(topics, topic, rows())


def test_a_rate_source_is_written_to_a_topic(topics: Topics, tmp_path: Path) -> None:
    source = topics.spark.readStream.format("rate-micro-batch").options(rowsPerBatch=500, startTimestamp=60_000)
    frame = source.load().selectExpr("value as n", "timestamp", "cast(unix_millis(timestamp) as string) as place")
    frame = frame.selectExpr("cast(n as string) as key", "to_json(struct(n, place)) as value", "timestamp")
    topic, batches = stream(topics, frame, tmp_path, includeTimestamp="true")
    assert batches == 1
    assert_holds(topics, topic, [{"n": n, "place": "60000"} for n in range(500)])
    assert {record.timestamp for record in topics.records(topic)} == {60_000}


def test_a_topic_is_written_to_another_topic(topics: Topics, tmp_path: Path) -> None:
    source = topics.create("in", partitions=2)
    topics.send(source, *map(str, range(200)), partition=0)
    topics.send(source, *map(str, range(200, 300)), partition=1)
    frame = topics.stream(subscribe=source, startingOffsets="earliest").selectExpr("value as key", "value")
    topic, _ = stream(topics, frame, tmp_path, deliveryGuarantee="exactly_once")
    assert sorted(map(int, topics.values(topic))) == list(range(300))
