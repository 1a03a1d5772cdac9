"""Compare the content of a topic with the expectation of a test."""

from __future__ import annotations

import difflib
import json
import sys
import time
from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

from ottla.testing.topic import Topic
from ottla.uncollected import uncollected

if TYPE_CHECKING:
    from ottla import ConsumerRecord

TIMEOUT = 10.0
POLL_SECONDS = 0.05
READING = {
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
    "fetch.max.wait.ms": 10,
    "allow.auto.create.topics": False,
}
"""A short wait, since the request for the topic's end is queued behind a waiting fetch. A misspelt topic is not created."""
NOTHING = object()


def assert_records(topic: str, expected: Iterable[Any], *, timeout: float = TIMEOUT) -> None:
    """Wait until a topic has the expected number of committed records, and compare all its records with the expected ones.

     `timeout` is the time to wait for missing records in seconds; existing records are read however busy the machine
    is. Each expected record is a value, or a pair of key and value. `bytes` are compared directly, `str` as UTF-8, None
    as a null value, and anything else as JSON. `topic` is the value of a fixture, a `Topic(name, client_settings)`, or
    the name of a topic of `ottla_broker`. With one partition the order matters. An AssertionError shows both lists as a
    diff.
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    place = topic if isinstance(topic, Topic) else topic_of_plugin(topic)
    if isinstance(expected, str | bytes):
        raise TypeError(f"assert_records expects a list of records: [{expected!r}] instead of {expected!r}")
    wanted = list(expected)
    found, partitions = read(place, len(wanted), timeout)
    likes = chain(wanted, repeat(wanted[-1] if wanted else NOTHING))
    lines = [line_of(record, like) for record, like in zip(found, likes, strict=False)]
    expected_lines = [repr(each) for each in wanted]
    if partitions == 0 and wanted:
        raise AssertionError(
            f"{place} does not exist, after {timeout:g} s: is this the name that the program writes to?"
        )
    if partitions > 1:
        lines, expected_lines = sorted(have_same_shape(found, wanted)), sorted(expected_lines)
    if lines != expected_lines:
        raise AssertionError(describe_difference(place, expected_lines, lines, timeout))


def topic_of_plugin(name: object) -> Topic:
    """Return a topic of the broker that the fixture `ottla_broker` has started, by its name."""
    plugin = sys.modules.get("ottla.testing.plugin")
    started = plugin.STARTED if plugin is not None else []
    if not isinstance(name, str) or not started:
        raise TypeError(
            f"assert_records needs a topic of ottla_topic or ottla_topics, a Topic(name, client_settings), or the name of a topic of a "
            f"running ottla_broker: {name!r}"
        )
    return Topic(name, started[-1].client_settings())


def read(topic: Topic, count: int, timeout: float) -> tuple[list[ConsumerRecord], int]:
    """Return the committed records once `count` exist or the time is over, and the number of partitions."""
    with uncollected():
        from ottla import Consumer, TopicPartition  # imported only if records are read

    deadline = time.monotonic() + timeout
    settings = {**topic.client_settings, **READING}
    found: list[ConsumerRecord] = []
    with Consumer(settings) as consumer:
        places: list[TopicPartition] = []
        while not places:  # the tested program may create the topic
            places = [TopicPartition(str(topic), each.partition) for each in consumer.partitions_for(str(topic))]
            if not places and time.monotonic() >= deadline:
                return [], 0
            consumer.assign(places)
            if not places:
                consumer.poll(POLL_SECONDS)
        while len(found) < count and time.monotonic() < deadline:
            found += list(consumer.poll(POLL_SECONDS))
        ends = consumer.end_offsets(places)
        deadline = time.monotonic() + TIMEOUT
        while any(consumer.position(each) < ends[each] for each in places) and time.monotonic() < deadline:
            found += list(consumer.poll(POLL_SECONDS))
    return found, len(places)


def line_of(record: ConsumerRecord, like: Any) -> str:
    """Return a record in the notation of the test."""
    if isinstance(like, tuple) and len(like) == 2:
        return repr((shape_value(record.key, like[0]), shape_value(record.value, like[1])))
    return repr(shape_value(record.value, like))


def shape_value(data: bytes | None, like: Any) -> Any:
    """Return bytes as the type that the test compares with, or unchanged if they cannot be converted."""
    if data is None or isinstance(like, bytes) or like is None or like is NOTHING:
        return data
    try:
        text = data.decode()
        return text if isinstance(like, str) else json.loads(text)
    except ValueError:
        return data


def have_same_shape(found: Sequence[ConsumerRecord], wanted: Sequence[Any]) -> list[str]:
    """Match records without order: each as an unused expected one, if possible."""
    left, lines = list(wanted), []
    for record in found:
        row = next((row for row, like in enumerate(left) if line_of(record, like) == repr(like)), None)
        lines.append(line_of(record, (left or wanted or [NOTHING])[0] if row is None else left.pop(row)))
    return lines


def describe_difference(topic: Topic, expected_lines: Sequence[str], lines: Sequence[str], timeout: float) -> str:
    late = f", after {timeout:g} s" if len(lines) < len(expected_lines) else ""
    shown = "\n".join(line.rstrip("\n") for line in difflib.ndiff(expected_lines, lines) if not line.startswith("?"))
    count = f"{len(lines)} record{'s' * (len(lines) != 1)}"
    return f"{topic} has {count}, {len(expected_lines)} expected{late} (- expected, + found):\n{shown}"
