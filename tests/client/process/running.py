"""A running processor, and the records that it has written."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import ottla

Function = Callable[[Any], Any]


def consumer_of(servers: str, group: str, **settings: Any) -> ottla.Consumer:
    """A consumer as processors need it."""
    given: dict[str, Any] = {"isolation_level": "read_committed", "enable_auto_commit": False, **settings}
    return ottla.Consumer(bootstrap_servers=servers, group_id=group, auto_offset_reset="earliest", **given)


@contextmanager
def running(
    servers: str,
    source: str,
    function: Function,
    *,
    transactional_id: str | None = None,
    reads: dict[str, Any] | None = None,
    make: Callable[..., ottla.Producer] = ottla.Producer,
    **settings: Any,
) -> Iterator[ottla.Processor]:
    """Run a processor in a thread. Leaving the block stops it and raises its exception. Its group and, by default, its
    transactional id have the name of the source.
    """
    failed: list[BaseException] = []
    ids = {"transactional_id": transactional_id or source} if settings.get("exactly_once", True) else {}

    def run() -> None:
        try:
            processor.run()
        except BaseException as error:
            failed.append(error)

    how = {"topics": [source], "commit_interval_ms": 20, **settings}
    with consumer_of(servers, source, **(reads or {})) as consumer, make(bootstrap_servers=servers, **ids) as producer:
        processor = ottla.Processor(consumer, producer, function, **how)
        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield processor
        finally:
            processor.stop()
            thread.join()
    if failed:
        raise failed[0]


def filled(servers: str, topic: str, values: list[str]) -> None:
    """Send these to the topic."""
    with ottla.Producer(bootstrap_servers=servers) as producer:
        for value in values:
            producer.send(topic, value.encode(), key=b"k")


def records_of(servers: str, topic: str) -> list[ottla.ConsumerRecord]:
    """Return the committed values."""
    with ottla.Consumer(
        bootstrap_servers=servers, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        places = [ottla.TopicPartition(topic, info.partition) for info in consumer.partitions_for(topic)]
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        found: list[ottla.ConsumerRecord] = []
        while any(consumer.position(place) < ends[place] for place in places):
            found += consumer.poll(timeout=0.05)
        return found


def values_of(servers: str, topic: str) -> list[bytes]:
    """The values of these."""
    return [record.value or b"" for record in records_of(servers, topic)]


def upper(record: ottla.ConsumerRecord) -> bytes:
    """The function of most tests."""
    return bytes(record.value or b"").upper()


def settled(servers: str, group: str, topic: str, offset: int) -> Callable[[], bool]:
    """True if the group has committed this offset."""
    place = ottla.TopicPartition(topic, 0)

    def check() -> bool:
        with consumer_of(servers, group) as consumer:
            found = consumer.committed([place])[place]
            return found is not None and found.offset >= offset

    return check


def ends_of(servers: str, topic: str) -> int:
    """How many offsets of it are stable."""
    with ottla.Consumer(bootstrap_servers=servers, isolation_level="read_committed") as consumer:
        places = [ottla.TopicPartition(topic, info.partition) for info in consumer.partitions_for(topic)]
        return sum(consumer.end_offsets(places).values())
