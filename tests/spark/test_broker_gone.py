"""A broker that is not there when Spark begins, or dies under a query: a sentence in bounded time, and nothing lost."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import SparkSession

from ottla import Broker
from tests.patience import eventually
from tests.spark.copy_job import ONCE, Job, counted
from tests.spark.topics import Topics

pytestmark = [pytest.mark.behaviour("D3", "D4"), pytest.mark.heavy]
NOBODY = "127.0.0.1:1"
READ_SOON, WRITE_SOON = {"kafka.default.api.timeout.ms": "1500"}, {"kafka.max.block.ms": "1500"}
"""Timeouts, which are a minute each by default."""


def read(topics: Topics) -> None:
    topics.read(subscribe="t", **READ_SOON).collect()


def write(topics: Topics, **options: str) -> None:
    frame = topics.spark.createDataFrame([("1",)], "value string")
    frame.write.format("ottla").options(**topics.options({"topic": "t", **WRITE_SOON, **options})).mode("append").save()


def write_once(topics: Topics) -> None:
    write(topics, **ONCE)


@pytest.mark.parametrize("work", [read, write, write_once], ids=lambda work: str(work.__name__))
def test_without_a_broker_nothing_starts_and_the_error_names_the_address(
    spark: SparkSession, work: Callable[[Topics], None]
) -> None:
    with pytest.raises(PySparkException, match=rf"no Kafka broker answered within 1500 ms .*{NOBODY}") as error:
        work(Topics(spark, NOBODY, "nobody"))
    assert "Traceback" not in str(error.value)
    assert "deadLetterTopic" not in str(error.value)  # which would be no remedy


def test_a_query_stops_with_an_error_if_its_broker_is_killed_and_continues_when_it_is_back(
    spark: SparkSession, tmp_path: Path
) -> None:
    def start(listen: str) -> Broker:
        return Broker(tmp_path / "data", listen=listen, process=True).start()

    broker = start("127.0.0.1:0")
    address = broker.bootstrap_servers
    try:
        job = Job(Topics(spark, address, "dies"), tmp_path / "checkpoint")
        job.feed(40)
        query = running(job)
        os.kill(broker.pid, signal.SIGKILL)
        broker.close()
        with pytest.raises(StreamingQueryException, match=rf"no Kafka broker answered .*{address}") as error:
            query.awaitTermination(100)
        assert "Traceback" not in str(error.value)
        broker = start(address)
        job.feed(40)
        job.run()
        assert counted(job.topics, job.target) == Counter(map(str, range(80)))
    finally:
        broker.close()


def running(job: Job) -> Any:
    """The job's query without an end, once it has done a batch."""
    stream = job.topics.stream(subscribe=job.source, startingOffsets="earliest", **READ_SOON).select("value")
    options = job.topics.options({"topic": job.target, **ONCE, **WRITE_SOON})
    query = stream.writeStream.format("ottla").options(**options, checkpointLocation=str(job.checkpoint)).start()
    eventually(lambda: query.lastProgress or query.exception() is not None)
    assert query.exception() is None
    return query
