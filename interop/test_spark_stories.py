"""Run the stories of `tests/spark/exactly_once` against Apache Kafka: requests of Spark's sink, without Spark."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.spark.exactly_once.batches import Query
from tests.spark.exactly_once.model import LARGE, explore
from tests.spark.exactly_once.stories import STORIES

pytestmark = pytest.mark.behaviour("D3", "D4", "P10")


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
@pytest.mark.parametrize("topic_by_row", [False, True], ids=["topic as option", "topic by row"])
def test_a_story_without_spark(apache_kafka: str, story: Callable[[Query], None], topic_by_row: bool) -> None:
    story(Query(apache_kafka, topic_by_row=topic_by_row))


@pytest.mark.long
@pytest.mark.parametrize("name", LARGE)
def test_no_row_is_missing_or_repeated_in_larger_simulations(name: str) -> None:
    assert explore(LARGE[name]).fault is None
