"""What is in a topic, held against what a test expects."""

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
READING = {"auto.offset.reset": "earliest", "isolation.level": "read_committed", "fetch.max.wait.ms": 10}
"""The last, as a question for the end of the topic is answered behind the fetch that waits."""
NOTHING = object()


def assert_records(topic: str, expected: Iterable[Any], *, timeout: float = TIMEOUT) -> None:
    """Wait until a topic has as many committed records as are expected, and hold all that it has against them.

    `timeout` is how many seconds to wait for those that are not there; what is there then is read, however busy the machine.
    Each is a value, or a pair of key and value. `bytes` are compared as they are, `str` as UTF-8, None as no value at all, and
    anything else as JSON. `topic` is that of a fixture, a `Topic(name, client_settings)`, or the name of a topic of `ottla_broker`. In a topic of one partition the order counts. AssertionError shows both, line by line.
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    place = topic if isinstance(topic, Topic) else topic_of_plugin(topic)
    if isinstance(expected, str | bytes):
        raise TypeError(
            f"assert_records wants a list of what the topic is to have: [{expected!r}] and not {expected!r}"
        )
    wanted = list(expected)
    found, partitions = read(place, len(wanted), timeout)
    likes = chain(wanted, repeat(wanted[-1] if wanted else NOTHING))
    lines = [line_of(record, like) for record, like in zip(found, likes, strict=False)]
    asked = [repr(each) for each in wanted]
    if partitions > 1:
        lines, asked = sorted(shaped_alike(found, wanted)), sorted(asked)
    if lines != asked:
        raise AssertionError(told(place, asked, lines, timeout))


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
    """All committed records that are there once there are so many or the time is over; and how many partitions there are."""
    with uncollected():
        from ottla import Consumer, TopicPartition  # only where something is read

    deadline = time.monotonic() + timeout
    settings = {**topic.client_settings, **READING}
    found: list[ConsumerRecord] = []
    with Consumer(settings) as consumer:
        places = [TopicPartition(str(topic), each.partition) for each in consumer.partitions_for(str(topic))]
        consumer.assign(places)
        while len(found) < count and time.monotonic() < deadline:
            found += list(consumer.poll(POLL_SECONDS))
        ends = consumer.end_offsets(places)
        deadline = time.monotonic() + TIMEOUT
        while any(consumer.position(each) < ends[each] for each in places) and time.monotonic() < deadline:
            found += list(consumer.poll(POLL_SECONDS))
    return found, len(places)


def line_of(record: ConsumerRecord, like: Any) -> str:
    """A record as the test would have written it."""
    if isinstance(like, tuple) and len(like) == 2:
        return repr((shaped(record.key, like[0]), shaped(record.value, like[1])))
    return repr(shaped(record.value, like))


def shaped(data: bytes | None, like: Any) -> Any:
    """Bytes as what the test compares them with; as they are where they are no such thing."""
    if data is None or isinstance(like, bytes) or like is None or like is NOTHING:
        return data
    try:
        text = data.decode()
        return text if isinstance(like, str) else json.loads(text)
    except ValueError:
        return data


def shaped_alike(found: Sequence[ConsumerRecord], wanted: Sequence[Any]) -> list[str]:
    """Without an order: each as one that is expected and that no other record is, if there is one."""
    left, lines = list(wanted), []
    for record in found:
        row = next((row for row, like in enumerate(left) if line_of(record, like) == repr(like)), None)
        lines.append(line_of(record, (left or wanted or [NOTHING])[0] if row is None else left.pop(row)))
    return lines


def told(topic: Topic, asked: Sequence[str], lines: Sequence[str], timeout: float) -> str:
    late = f", after {timeout:g} s" if len(lines) < len(asked) else ""
    shown = "\n".join(line.rstrip("\n") for line in difflib.ndiff(asked, lines) if not line.startswith("?"))
    count = f"{len(lines)} record{'s' * (len(lines) != 1)}"
    return f"{topic} has {count}, {len(asked)} expected{late} (- expected, + found):\n{shown}"
