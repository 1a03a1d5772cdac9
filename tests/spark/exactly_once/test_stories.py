"""Drivers and tasks on Ottla's broker, without Spark: the stories of `stories.py`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla import Broker
from tests.spark.exactly_once import stories
from tests.spark.exactly_once.batches import Query

pytestmark = [pytest.mark.behaviour("P10"), pytest.mark.behaviour("D3")]


@pytest.mark.parametrize("story", stories.STORIES, ids=lambda story: story.__name__)
@pytest.mark.parametrize("topic_by_row", [False, True], ids=["topic as option", "topic by row"])
def test_a_story(broker: Broker, story: Callable[[Query], None], topic_by_row: bool) -> None:
    story(Query(broker.bootstrap_servers, topic_by_row=topic_by_row))


def test_a_fenced_task_without_news_of_the_other_reports_it(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    query = Query(broker.bootstrap_servers)
    stories.a_fenced_task_without_news_of_the_other_reports_it(query, monkeypatch)
