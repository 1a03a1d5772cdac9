"""The example for users of Spark on the page on tests, with the session that is there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ottla import Broker, Producer
from ottla.testing import Topic
from tests.spark.topics import Topics
from tests.testing.pages import examples_of


@pytest.fixture
def producer(broker: Broker) -> Iterator[Producer]:
    with Producer(broker.client_settings()) as producer:
        yield producer


def test_the_pages_example_runs(spark: SparkSession, broker: Broker, topics: Topics, producer: Producer) -> None:
    (block,) = [each for each in examples_of("testing.md") if "spark" in each]
    scope: dict[str, Any] = {}
    exec(block, scope)
    scope["test_orders_are_counted"](spark, broker, Topic(topics.create(), broker.client_settings()), producer)
