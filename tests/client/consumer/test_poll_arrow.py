"""The columns that `poll_arrow` returns."""

from __future__ import annotations

from typing import Any

import pytest

from ottla import Consumer, Producer, TopicPartition
from tests.client.consumer.conftest import Members, fill_topic


@pytest.fixture
def consumer(member: Members, shared_topic: str, group_producer: Producer) -> Consumer:
    """A consumer with five records to read."""
    fill_topic(group_producer, shared_topic, 5, partitions=1)
    consumer = member()
    consumer.assign([TopicPartition(shared_topic, 0)])
    return consumer


def test_only_the_named_columns_are_returned_in_that_order(consumer: Consumer, shared_topic: str) -> None:
    table = consumer.poll_arrow(30, columns=["offset", "topic", "value"])
    assert table.column_names == ["offset", "topic", "value"]
    assert table.column("offset").to_pylist() == [0, 1, 2, 3, 4]
    assert set(table.column("topic").to_pylist()) == {shared_topic}
    assert consumer.position(TopicPartition(shared_topic, 0)) == 5


def test_headers_are_returned_when_named_or_requested(consumer: Consumer) -> None:
    assert consumer.poll_arrow(30, columns=["headers"]).column("headers").to_pylist() == [None] * 5
    assert consumer.poll_arrow(0, columns=["value"], include_headers=True).column_names == ["value", "headers"]


@pytest.mark.parametrize(
    ("columns", "error", "text"),
    [
        (["vale"], ValueError, "there is no 'vale'; there are key, value, topic"),
        ([], ValueError, "name at least one, and none twice"),
        (["key", "key"], ValueError, "name at least one, and none twice"),
        ("value", TypeError, "is one name: hand over a list"),
    ],
)
def test_unknown_columns_are_an_error_before_anything_is_read(
    consumer: Consumer, shared_topic: str, columns: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        consumer.poll_arrow(30, columns=columns)
    assert consumer.poll_arrow(30, columns=["offset"]).num_rows == 5
