"""What a worker's garbage collector is spared."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator

import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession

from ottla.spark.workers.garbage import Settling, settle


@pytest.fixture
def seen() -> Iterator[None]:
    """All that this process has is in the collector's sight, before and after."""
    gc.unfreeze()
    yield
    gc.unfreeze()


def test_what_a_worker_holds_is_put_away_in_its_second_task(seen: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TaskContext, "get", object)
    worker = Settling()
    settle(worker)
    assert gc.get_freeze_count() == 0
    settle(worker)
    assert gc.get_freeze_count() > 10_000


def test_what_later_tasks_leave_is_swept_as_ever(seen: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TaskContext, "get", object)
    settle(Settling(has_had_a_task=True, is_settled=True))
    assert gc.get_freeze_count() == 0


def test_a_process_that_is_no_worker_is_left_alone(seen: None) -> None:
    settle(Settling(has_had_a_task=True))
    assert gc.get_freeze_count() == 0


def test_a_worker_of_spark_is_known_as_one(spark: SparkSession) -> None:
    def put_away(rows: Iterable[int]) -> Iterable[int]:
        settle(Settling(has_had_a_task=True))
        yield gc.get_freeze_count()

    (count,) = spark.sparkContext.parallelize([0], 1).mapPartitions(put_away).collect()
    assert count > 10_000
