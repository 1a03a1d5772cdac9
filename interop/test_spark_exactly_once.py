"""Exactly once with Spark's sink, on our broker and on Apache Kafka, after replays and kills."""

from __future__ import annotations

import os
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from interop.spark_stage import STOPS, Stage
from ottla import Broker, Producer
from tests.client.conftest import fresh_name
from tests.spark.copy_job import Job, counted
from tests.spark.topics import Topics, new_session

pytestmark = [pytest.mark.behaviour("D3", "D4", "P10"), pytest.mark.usefixtures("quick_drivers")]
MakeJob = Callable[[], Job]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session = new_session(str(tmp_path_factory.mktemp("warehouse")))
    yield session
    session.stop()


@pytest.fixture
def job(spark: SparkSession, any_broker: str, tmp_path: Path) -> Job:
    return Job(Topics(spark, any_broker, fresh_name()), tmp_path / "checkpoint")


def test_an_unfinished_task_is_run_again_and_the_finished_ones_are_not(job: Job) -> None:
    job.feed(10)
    job.run()
    job.forget_the_end_of_the_last_batch()
    job.forget_a_task(1)
    job.run()
    counts = counted(job.topics, job.target)
    assert counts == Counter({str(n): 1 + n % 2 for n in range(10)})  # the rows of the second task were not aborted


def test_a_half_written_batch_to_another_topic_stops(job: Job) -> None:
    job.feed(4)
    job.run(markerTopic=job.source)
    job.forget_the_end_of_the_last_batch()
    other = job.topics.create("other")
    with pytest.raises(StreamingQueryException, match=r"the option topic was .*: set it back"):
        job.run(markerTopic=job.source, topic=other)
    assert counted(job.topics, other) == Counter()


def test_another_producer_with_the_id_of_a_task_stops_the_query_or_is_fenced(job: Job) -> None:
    job.feed(2)
    job.run()
    with Producer(bootstrap_servers=job.topics.servers, transactional_id=job.group(0)) as zombie:
        zombie.init_transactions()
        zombie.begin_transaction()
        zombie.send(job.target, b"zombie").result(10)
        job.feed(2)
        job.run()
    assert counted(job.topics, job.target) == Counter("0123")


def test_rows_that_name_their_topics_are_committed_once(job: Job) -> None:
    job.feed(6)
    frame = job.frame().selectExpr("value", f"'{job.target}' as topic")
    options = {"topic": None}
    job.run(frame, **options)
    job.forget_the_end_of_the_last_batch()
    job.run(frame, **options)
    assert counted(job.topics, job.target) == Counter("012345")


STEPS = ("commit/ended/1", "announce/announced/commit", "hold/marked/0")
"""The driver waits only at steps of a transaction that its predecessor announced and did not finish."""


def test_the_driver_is_killed_at_steps_of_every_kind(ottla_broker: str, tmp_path: Path) -> None:
    """On Apache Kafka, `make kills` runs every step."""
    stage = Stage(tmp_path, ottla_broker)
    for stop in STEPS:
        stage.feed(180)
        assert not stage.run(stop)
    assert stage.run()
    assert stage.tally() == (0, 0, 0, len(STEPS))


@pytest.mark.long
def test_the_driver_is_killed_at_every_step(any_broker: str, tmp_path: Path) -> None:
    """The same from the command line: `python -m interop.spark_stage ADDRESS`."""
    stage = Stage(tmp_path, any_broker)
    for stop in STOPS:
        stage.feed(180)
        stage.run(stop)
    assert stage.run()
    assert stage.tally() == (0, 0, 0, len(STOPS))


ONE_CHECKPOINT = "two queries run on one checkpoint|Multiple streaming (jobs detected|queries are concurrently using)"
"""The error of the sink or of Spark in the query that has to stop."""


@pytest.mark.long
def test_one_of_two_queries_on_one_checkpoint_stops_with_a_reason(any_broker: str, tmp_path: Path) -> None:
    stage = Stage(tmp_path, any_broker)
    stage.feed(60)
    assert stage.run()
    stage.feed(480)
    both = [stage.start(), stage.start()]
    ends = [each.wait(300) for each in both]
    assert any(ends)
    assert re.search(ONE_CHECKPOINT, (tmp_path / "log").read_text())
    assert stage.run()
    assert stage.tally() == (0, 0, 0, 0)


def test_the_task_of_a_killed_worker_is_retried(any_broker: str, tmp_path: Path) -> None:
    stage = Stage(tmp_path, any_broker)
    stage.feed(180)
    assert stage.run("commit/ended/1", "worker", "local[2,4]")
    assert stage.tally() == (0, 0, 0, 1)


def test_the_broker_is_killed_in_the_middle_of_a_transaction(tmp_path: Path) -> None:
    def start(listen: str) -> Broker:
        return Broker(tmp_path / "data", listen=listen, process=True).start()

    broker = start("127.0.0.1:0")
    address = broker.bootstrap_servers
    try:
        stage = Stage(tmp_path, address)
        stage.feed(180)
        running = stage.start("commit/marked/0", "nobody")  # and waits there
        deadline = time.monotonic() + 200
        while not stage.stopped.exists():
            assert time.monotonic() < deadline
            assert running.poll() is None
            time.sleep(0.05)
        os.kill(broker.pid, signal.SIGKILL)
        broker.close()
        broker = start(address)
        running.wait(300)
        assert stage.run()
        assert stage.tally() == (0, 0, 0, 0)
    finally:
        broker.close()


@pytest.mark.parametrize("any_broker", ["ottla", pytest.param("apache", marks=pytest.mark.long)], indirect=True)
def test_a_slow_task_and_its_speculative_copy_write_once(any_broker: str, tmp_path: Path) -> None:
    stage = Stage(tmp_path, any_broker)
    stage.feed(180)
    soon = ("spark.speculation=true", "spark.speculation.interval=100ms", "spark.speculation.multiplier=1.1")
    quick = ("spark.speculation.quantile=0.4", "spark.speculation.minTaskRuntime=100ms", "spark.executor.memory=512m")
    assert stage.run("commit/sent/0", "nobody", "local-cluster[2,1,512]", *soon, *quick)
    assert stage.tally() == (0, 0, 0, 1)
