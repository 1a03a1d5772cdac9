"""Compare the final content of each partition with the responses that all clients received."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interop.splits.crowd import Crowd, topics_of
from interop.splits.ledger import Row, Tally, skipped, tally
from interop.splits.nodes import Node
from ottla import Admin, Consumer, TopicPartition
from ottla.errors import OttlaError
from ottla.model import LATEST
from rivals.kafka_cluster import wait_for

SETTLED_SECONDS = 240.0


def place_of(place: str) -> TopicPartition:
    topic, _, partition = place.rpartition("-")
    return TopicPartition(topic, int(partition))


def wait_in_sync(address: str, count: int) -> None:
    """Wait until every partition has `count` in-sync replicas."""

    def lagging() -> list[str] | None:
        try:
            with Admin(bootstrap_servers=address, request_timeout_ms=5000) as admin:
                topics = admin.describe_topics()
        except OttlaError:
            return None
        each_of = ((name, each) for name, topic in topics.items() for each in topic.partitions)
        return [f"{name}-{each.partition} {each}" for name, each in each_of if len(each.in_sync_replicas) < count]

    wait_for(lambda: lagging() == [], lambda: f"copies are out of sync: {lagging()}", SETTLED_SECONDS)


def rows(address: str, place: TopicPartition, isolation: str) -> list[Row]:
    """Read all records of a partition, in order."""
    with Admin(bootstrap_servers=address) as admin:
        end = admin.list_offsets({place: LATEST})[place].offset
    found: list[Row] = []
    with Consumer({"bootstrap.servers": address, "isolation.level": isolation}) as consumer:
        consumer.assign([place])
        consumer.seek(place, 0)

        def is_read() -> bool:
            found.extend((int(each.value or b""), (each.key or b"").decode()) for each in consumer.poll(0.5))
            return bool(consumer.position(place) >= end)

        wait_for(is_read, lambda: f"{place} is read to {consumer.position(place)} of {end}", SETTLED_SECONDS)
    return found


def accounts(address: str, crowd: Crowd) -> dict[str, Tally]:
    """Return the tally of each writer. A transaction has to be in all of its partitions, or in none."""
    found: dict[str, Tally] = {}
    for writer in crowd.writers:
        there = {place: rows(address, place_of(place), writer.isolation) for place in writer.places}
        whole: set[int] = set()
        if writer.isolation == "read_committed":
            whole = {number for each in there.values() for number, attempt in each if attempt not in writer.aborted}
        reported = [tally(each, writer.acknowledged(place) | whole, writer.aborted) for place, each in there.items()]
        found[writer.name] = sum(reported, Tally())
    return found


def wait_until_read(crowd: Crowd, address: str) -> None:
    """Wait until each member of a group has read all records."""
    written = {
        topic: {number for number, _ in rows(address, TopicPartition(topic, 0), "read_uncommitted")}
        for topic in topics_of("librdkafka")
    }

    def unread() -> dict[str, Any]:
        found = {
            f"{reader.name} {topic}": len(numbers - set(reader.seen[topic]))
            for reader in crowd.readers
            for topic, numbers in written.items()
            if topic in reader.seen
        }
        return {what: count for what, count in found.items() if count}

    wait_for(lambda: not unread(), lambda: f"groups have not read all: {unread()}", SETTLED_SECONDS)


def skips(crowd: Crowd) -> dict[str, int]:
    """Return how often each group skipped records although none were missing."""
    found = {reader.name: sum(map(skipped, reader.seen.values())) for reader in crowd.readers}
    return {name: count for name, count in found.items() if count}


def differing(nodes: Sequence[Node], crowd: Crowd) -> list[str]:
    """Return the partitions with different bytes on two brokers."""
    places = [place for writer in crowd.writers for place in writer.places]
    brokers = [each for each in nodes if each.leads]
    return [place for place in places if len({each.log(place) for each in brokers}) > 1]
