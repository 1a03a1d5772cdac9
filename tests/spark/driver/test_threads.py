"""Sources and sinks from any thread of a program."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

from pyspark.sql import SparkSession

from ottla.spark import session
from tests.spark.topics import Topics


def in_a_new_thread(work: Callable[[], Any]) -> None:
    """Do it there, and raise here what it raises."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    thread = Thread(target=run)
    thread.start()
    thread.join(120)
    assert not thread.is_alive()
    for error in raised:
        raise error


def test_a_dataframe_is_written_from_any_thread(topics: Topics) -> None:
    topic = topics.create("out")
    frame = topics.spark.createDataFrame([("1",)], "value string")
    writer = frame.write.format("ottla").options(**topics.options({"topic": topic})).mode("append")
    in_a_new_thread(writer.save)
    assert topics.values(topic) == ["1"]


def test_a_stream_is_started_from_any_thread(topics: Topics, tmp_path: Path) -> None:
    source, target = topics.create(), topics.create("out")
    topics.send(source, "1", "2")
    stream = topics.stream(subscribe=source, startingOffsets="earliest").select("value")
    writer = stream.writeStream.format("ottla").options(**topics.options({"topic": target}))

    def run() -> None:
        assert SparkSession.getActiveSession() is None  # else this proves nothing
        query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
        assert query.awaitTermination(100)

    in_a_new_thread(run)
    assert topics.values(target) == ["1", "2"]


def test_the_requested_session_becomes_active(topics: Topics) -> None:
    spark = topics.spark
    java: Any = spark._jvm
    sessions = java.org.apache.spark.sql.SparkSession
    other = spark.newSession()
    sessions.setActiveSession(other._jsparkSession)
    assert session() is spark
    assert sessions.getActiveSession().get().equals(spark._jsparkSession)
