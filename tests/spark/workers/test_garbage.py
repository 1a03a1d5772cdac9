"""Objects that a worker's garbage collector skips."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator

import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession

from ottla.spark.workers.garbage import Settling, freeze_permanent_objects


@pytest.fixture
def seen() -> Iterator[None]:
    """All that this process has is in the collector's sight, before and after."""
    gc.unfreeze()
    yield
    gc.unfreeze()


def test_the_objects_of_a_worker_are_frozen_in_its_second_task(seen: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TaskContext, "get", object)
    worker = Settling()
    freeze_permanent_objects(worker)
    assert gc.get_freeze_count() == 0
    freeze_permanent_objects(worker)
    assert gc.get_freeze_count() > 10_000


def test_objects_of_later_tasks_are_collected_as_usual(seen: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TaskContext, "get", object)
    freeze_permanent_objects(Settling(has_had_a_task=True, is_settled=True))
    assert gc.get_freeze_count() == 0


def test_a_process_that_is_not_a_worker_is_left_alone(seen: None) -> None:
    freeze_permanent_objects(Settling(has_had_a_task=True))
    assert gc.get_freeze_count() == 0


def test_a_worker_of_spark_is_known_as_one(spark: SparkSession) -> None:
    def put_away(rows: Iterable[int]) -> Iterable[int]:
        freeze_permanent_objects(Settling(has_had_a_task=True))
        yield gc.get_freeze_count()

    (count,) = spark.sparkContext.parallelize([0], 1).mapPartitions(put_away).collect()
    assert count > 10_000
