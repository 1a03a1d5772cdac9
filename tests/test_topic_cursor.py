"""The cursor of sensors. The sensors themselves are tested in `interop/test_dagster.py` and `interop/test_airflow.py`."""

from __future__ import annotations

import pytest

from ottla.errors import OttlaError
from ottla.model import TopicPartition
from ottla.topic_cursor import TopicCursor, parse_cursor

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def test_a_cursor_is_read_as_it_was_written() -> None:
    cursor = TopicCursor({A1: 7, A0: 3, TopicPartition("b", 0): 1}, {"a": "id"})
    assert parse_cursor(cursor.to_json()) == cursor
    assert parse_cursor(None) is None
    assert parse_cursor("") is None


@pytest.mark.parametrize(
    "text", ["x", "[]", '{"a": 1}', '{"a": {"id": null}}', '{"a": {"id": null, "offsets": {"x": 1}}}']
)
def test_another_text_is_a_sentence(text: str) -> None:
    with pytest.raises(OttlaError, match="is not one of this sensor: expected"):
        parse_cursor(text)


def test_new_partitions_and_recreated_topics_start_at_their_first_record() -> None:
    cursor = TopicCursor({A0: 5}, {"a": "old"})
    assert cursor.start_offsets({"a": "old"}, {A0: 0, A1: 2}, {A0: 9, A1: 9}) == {A0: 5, A1: 2}
    assert cursor.start_offsets({"a": "new"}, {A0: 0}, {A0: 9}) == {A0: 0}
    assert TopicCursor({A0: 5}, {}).start_offsets({}, {A0: 0}, {A0: 5}) == {A0: 5}


@pytest.mark.parametrize(("first", "end"), [(6, 9), (0, 4)])
def test_deleted_records_are_an_error(first: int, end: int) -> None:
    with pytest.raises(OttlaError, match=f"a-0: the cursor is at offset 5, and the broker has {first} to {end}"):
        TopicCursor({A0: 5}, {}).start_offsets({}, {A0: first}, {A0: end})
