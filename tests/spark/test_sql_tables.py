"""Topics by SQL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.errors import PySparkException

from tests.spark.topics import Topics


@pytest.fixture
def table(topics: Topics) -> Iterator[str]:
    """The name of a table that is dropped afterwards."""
    yield "of_a_topic"
    topics.spark.sql("drop table if exists of_a_topic")


def made_of(topics: Topics, table: str, **options: str) -> None:
    message = ", ".join(f"`{name}` '{text}'" for name, text in topics.options(options).items())
    topics.spark.sql(f"create table {table} using ottla options ({message})")


def test_a_table_whose_options_spark_does_not_pass_on_raises_an_error_with_the_remedy(
    topics: Topics, table: str
) -> None:
    topic = topics.create()
    topics.send(topic, "one")
    made_of(topics, table, subscribe=topic, topic=topic)
    with pytest.raises(PySparkException, match="give it a name with createOrReplaceTempView"):
        topics.spark.sql(f"select * from {table}").collect()
    topics.read(subscribe=topic).createOrReplaceTempView("named")
    (row,) = topics.spark.sql("select cast(value as string) as value from named").collect()
    assert row.value == "one"


def test_a_table_with_an_unknown_option_is_a_one_line_error(topics: Topics, table: str) -> None:
    with pytest.raises(PySparkException, match="unknown option 'colour'"):
        made_of(topics, table, subscribe=topics.create(), colour="red")
