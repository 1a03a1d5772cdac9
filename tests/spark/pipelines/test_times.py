"""Times are written with all that they have."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ottla import Broker
from ottla.pipelines.sinks.topic import TopicSink
from tests.spark.pipelines.test_manager import Folder

pytestmark = pytest.mark.heavy

TIMES = "select timestamp'2026-01-01 00:00:01.123456Z' as at, timestamp_ntz'2026-01-01 00:00:01.000001' as local"
WRITTEN = '"at":"2026-01-01T00:00:01.123456Z"'
LOCAL = '"local":"2026-01-01T00:00:01.000001"'


def test_a_record_has_the_microseconds_of_its_times_in_value_and_key(spark: SparkSession) -> None:
    frame = spark.sql(f"select *, struct(at, local) as inner from ({TIMES})")
    sink = TopicSink(type="topic", topic="t", key="inner")
    (record,) = sink.records(frame, False).collect()
    assert record.key == f"{{{WRITTEN},{LOCAL}}}"
    assert record.value == f'{{{WRITTEN},{LOCAL},"inner":{record.key}}}'


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_files_have_them_unless_a_format_of_ones_own_is_given(
    spark: SparkSession, broker: Broker, tmp_path: Path, kind: str
) -> None:
    folder = Folder(spark, broker, tmp_path)
    folder.write("in/a.json", f"{{{WRITTEN},{LOCAL}}}\n")
    source = {"type": "files", "format": "json", "path": "in", "schema": "at timestamp, local timestamp_ntz"}
    ours = {"source": source, "sink": {"type": "files", "format": kind, "path": "ours"}}
    own = {"source": source, "sink": ours["sink"] | {"path": "own", "options": {"timestampFormat": "HH:mm"}}}
    assert folder.run(ours=ours, own=own), folder.reported

    def text(name: str) -> str:
        return "".join(one.read_text() for one in (tmp_path / name).glob("part-*"))

    assert "2026-01-01T00:00:01.123456Z" in text("ours")
    assert "2026-01-01T00:00:01.000001" in text("ours")
    assert "00:00" in text("own")
    assert "2026-01-01T00:00:01.000001" in text("own")
    assert "123456" not in text("own")
