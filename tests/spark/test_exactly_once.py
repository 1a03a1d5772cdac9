"""Rows committed once, through Spark, a broker and checkpoints."""

from __future__ import annotations

import uuid
from collections import Counter
from pathlib import Path

import pytest
from pyspark.errors import PySparkException, StreamingQueryException

import ottla.spark
from ottla import Admin, Producer
from ottla.spark.sink.dead_letters import PREFIX
from ottla.spark.sink.write_stream import query_of
from tests.client.conftest import eventually
from tests.spark.copy_job import ONCE, Job, committed, counted
from tests.spark.topics import Topics

pytestmark = [pytest.mark.behaviour("D3"), pytest.mark.behaviour("P10")]


@pytest.fixture
def job(topics: Topics, tmp_path: Path) -> Job:
    return Job(topics, tmp_path / "checkpoint")


def test_a_batch_that_is_run_again_is_not_written_again_and_the_query_continues(job: Job) -> None:
    job.feed(10)
    job.run()
    job.forget_the_end_of_the_last_batch()
    job.feed(10)
    job.run()
    assert counted(job.topics, job.target) == Counter(map(str, range(20)))


def test_a_partly_written_batch_that_is_partitioned_differently_stops_with_an_error_that_names_what_to_restore(
    job: Job,
) -> None:
    job.feed(40)
    job.run(job.frame().repartition(3, "value"))
    job.forget_the_end_of_the_last_batch()
    for tasks in (2, 4):
        with pytest.raises(StreamingQueryException, match=r"is partly written.*restore.*repartition\(\)") as error:
            job.run(job.frame().repartition(tasks, "value"))
        assert "Traceback" not in str(error.value)
    assert counted(job.topics, job.target) == Counter(map(str, range(40)))
    job.run(job.frame().repartition(3, "value"))
    assert counted(job.topics, job.target) == Counter(map(str, range(40)))


def test_a_half_written_batch_stops_rather_than_continue_in_another_topic(job: Job) -> None:
    job.feed(4)
    job.run()
    job.forget_the_end_of_the_last_batch()
    other = job.topics.create("other")
    with pytest.raises(StreamingQueryException, match="restore the options topic and markerTopic until") as error:
        job.run(topic=other)
    assert "Traceback" not in str(error.value)
    job.run()
    job.feed(4)
    job.run(topic=other)
    assert (counted(job.topics, job.target), counted(job.topics, other)) == (Counter("0123"), Counter("4567"))


def test_rows_that_cannot_be_written_are_sent_to_the_dead_letters_in_the_same_transaction(job: Job) -> None:
    job.feed(4)
    dead = job.topics.create("dead")
    frame = job.frame().selectExpr("value", "cast(if(cast(value as string) = '2', 77, null) as int) as partition")
    with pytest.raises(StreamingQueryException, match=r"row 1 of Spark's partition 0 cannot be written: partition 77"):
        job.run(frame)
    assert counted(job.topics, job.target).keys() <= {"1", "3"}  # the other task's, where it was done by then
    job.run(frame, deadLetterTopic=dead)
    job.forget_the_end_of_the_last_batch()
    job.run(frame, deadLetterTopic=dead)
    assert counted(job.topics, job.target) == Counter("013")
    (letter,) = committed(job.topics, dead)
    assert letter.value == b"2"
    assert "partition 77 does not exist" in dict(letter.headers)[PREFIX + "exception.message"].decode()


def test_a_topic_that_is_not_there_is_made_by_the_first_batch(job: Job) -> None:
    job.feed(4)
    job.run(topic=f"{job.target}-new")
    assert counted(job.topics, f"{job.target}-new") == Counter("0123")


def test_an_open_transaction_of_a_failed_micro_batch_blocks_no_reader(job: Job) -> None:
    job.feed(2)
    job.run()
    name = f"ottla-spark-{query_of(str(job.checkpoint))}-7"
    left = Producer(bootstrap_servers=job.topics.servers, transactional_id=name)
    left.init_transactions()
    left.begin_transaction()
    left.send(job.target, b"of a task that was killed").result(30)
    job.feed(2)
    with pytest.raises(StreamingQueryException, match="partition 77 does not exist"):
        job.run(job.frame().selectExpr("value", "77 as partition"))
    with Admin(bootstrap_servers=job.topics.servers) as admin:
        assert name not in [known.transactional_id for known in admin.list_transactions(states=["Ongoing"])]
    left.close(0)
    job.run()
    assert counted(job.topics, job.target) == Counter("0123")


def test_an_aggregation_s_changes_are_written_once_by_write_stream(job: Job) -> None:
    def run() -> None:
        numbers = job.frame().selectExpr("cast(cast(value as string) as int) % 2 as odd")
        counts = numbers.groupBy("odd").count()
        frame = counts.selectExpr("cast(odd as string) as key", "concat(odd, '=', count) as value")
        options = job.topics.options({"topic": job.target, **ONCE})
        query = ottla.spark.write_stream(frame, options, checkpoint=job.checkpoint, trigger={"availableNow": True})
        assert query.awaitTermination(100)

    job.feed(10)
    run()
    job.forget_the_end_of_the_last_batch()
    job.feed(10)
    run()
    assert counted(job.topics, job.target) == Counter(["0=5", "1=5", "0=10", "1=10"])


def test_a_batch_write_counts_as_a_whole_or_not_at_all(topics: Topics) -> None:
    topic = topics.create("out", 2)
    rows = topics.spark.range(100).selectExpr("cast(id as string) as value", "cast(null as int) as partition")
    bad = rows.where("value = 'none'").unionAll(topics.spark.sql("select 'bad' as value, 9 as partition"))
    for frame in (rows.unionAll(bad), rows):
        writer = frame.write.format("ottla").options(**topics.options({"topic": topic, **ONCE})).mode("append")
        if frame is rows:
            writer.save()
        else:
            with pytest.raises(PySparkException, match="partition 9 does not exist"):
                writer.save()
    # A task that began when the first write had failed already may keep readers waiting for a moment.
    eventually(lambda: counted(topics, topic) == Counter(map(str, range(100))))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({**ONCE, "kafka.transactional.id": "x"}, "tasks have their own ids; set their prefix with"),
        ({"kafka.transactional.id": "x"}, "is not allowed for a sink; set deliveryGuarantee to exactly_once"),
        ({**ONCE, "kafka.enable.idempotence": "false"}, "needs enable.idempotence = true"),
        ({"deliveryGuarantee": "twice"}, "deliveryGuarantee = 'twice'"),
    ],
)
def test_settings_that_cannot_keep_the_promise_are_a_one_line_error(
    topics: Topics, options: dict[str, str], sentence: str
) -> None:
    frame = topics.spark.createDataFrame([("1",)], "value string")
    with pytest.raises(PySparkException) as error:
        frame.write.format("ottla").options(**topics.options({"topic": uuid.uuid4().hex, **options})).mode(
            "append"
        ).save()
    assert sentence in str(error.value)
    assert "Traceback" not in str(error.value)
