"""Tables under kills: Spark's driver is killed between all pairs of steps, and every row is in the table once."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from interop.conftest import NewTopicName
from interop.table_job import POINTS
from ottla import Producer
from tests.client.conftest import fresh_name
from tests.spark.tables.lake import FORMATS, Lake
from tests.spark.tables.streams import numbers, once, run, start
from tests.spark.topics import Topics, new_session

pytestmark = [pytest.mark.behaviour("D2", "D3"), pytest.mark.usefixtures("quick_drivers")]
ROWS = 3_000
NOW_MS = int(time.time() * 1000)


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session = new_session(str(tmp_path_factory.mktemp("warehouse")))
    yield session
    session.stop()


@pytest.fixture
def topics(spark: SparkSession, ottla_broker: str) -> Topics:
    return Topics(spark, ottla_broker, fresh_name())


@pytest.fixture(params=FORMATS)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake(request.param, tmp_path / "lake")


def job(*arguments: str) -> int:
    """Run the job and return its exit status."""
    command = [sys.executable, "-m", "interop.table_job", *arguments]
    log = Path(arguments[2], "job.log")
    with log.open("wb") as errors:  # a file, because the children of a killed process would keep a pipe open
        process = subprocess.Popen(command, stdout=errors, stderr=errors)
        try:
            status = process.wait(300)
        finally:
            process.kill()
            process.wait()
    assert status in (0, -signal.SIGKILL), log.read_text(errors="replace")[-3000:]
    return status


def test_a_driver_that_is_killed_at_any_step_leaves_every_row_once(
    ottla_broker: str, fresh_topic: NewTopicName, tmp_path: Path
) -> None:
    topic = fresh_topic(ottla_broker)
    with Producer(bootstrap_servers=ottla_broker) as producer:
        for n in range(ROWS):
            producer.send(topic, str(n).encode())
    deaths = [f"delta:{POINTS[0]}:1", f"delta:{POINTS[1]}:2", f"delta:{POINTS[2]}:3", f"iceberg:{POINTS[2]}:2"]
    for death in deaths:
        assert job(ottla_broker, topic, str(tmp_path), death) == -signal.SIGKILL, death
    assert job(ottla_broker, topic, str(tmp_path), "nothing") == 0
    for kind in FORMATS:
        lake = Lake(kind, tmp_path / kind)
        counts = lake.counts()
        missing, twice = [n for n in range(ROWS) if not counts[n]], [n for n in counts if counts[n] > 1]
        assert (missing, twice) == ([], []), kind
        assert {Path(file).name for file in lake.files()} == lake.store().file_names()


def test_a_complete_result_replaces_the_previous_one(topics: Topics, lake: Lake, tmp_path: Path) -> None:
    topic = topics.create()
    for value in ("1", "2"):
        topics.send(topic, value, timestamp=NOW_MS)  # otherwise retention deletes it as too old
        run(numbers(topics, topic).groupBy().sum("n"), lake, tmp_path / "checkpoint", mode="complete")
    assert lake.arrow().column(0).to_pylist() == [3]


def test_two_streams_into_one_table_do_not_disturb_each_other(topics: Topics, lake: Lake, tmp_path: Path) -> None:
    first, second = topics.create("first"), topics.create("second")
    topics.send(first, *map(str, range(20)), timestamp=NOW_MS)
    topics.send(second, *map(str, range(20, 40)), timestamp=NOW_MS)
    queries = [start(numbers(topics, topic), lake, tmp_path / topic[-6:]) for topic in (first, second)]
    assert all(query.awaitTermination(60) for query in queries)
    assert lake.counts() == once(*range(40))
