"""Two new brokers for each test: they contain only what the test and its mirror write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from ottla import Admin, Broker, Consumer, Producer
from ottla.client.admin import NewTopic
from ottla.mirror import Mirror, MirrorSettings, Selection
from ottla.model import TopicPartition


class Side(NamedTuple):
    """A cluster."""

    address: str

    def make(self, topic: str, partitions: int = 1, **configs: str) -> None:
        with Admin(bootstrap_servers=self.address) as admin:
            named = {name.replace("_", "."): value for name, value in configs.items()}
            admin.create_topics([NewTopic(topic, partitions, configs=named)])

    def send(self, topic: str, *values: str | None, **more: Any) -> None:
        with Producer(bootstrap_servers=self.address, max_request_size=2_000_000) as producer:
            for value in values:
                producer.send(topic, None if value is None else value.encode(), **more)

    def records(self, topic: str) -> list[Any]:
        """Return the committed records by partition."""
        settings: dict[str, Any] = {"isolation_level": "read_committed", "enable_auto_commit": False}
        with Consumer(bootstrap_servers=self.address, **settings) as consumer:
            places = [TopicPartition(topic, info.partition) for info in consumer.partitions_for(topic)]
            consumer.assign(places)
            consumer.seek_to_beginning()
            ends, found = consumer.end_offsets(places), []
            while any(consumer.position(tp) < end for tp, end in ends.items()):
                found += list(consumer.poll(1.0))
            return sorted(found, key=lambda record: (record.partition, record.offset))

    def values(self, topic: str) -> list[str | None]:
        return [record.value and record.value.decode() for record in self.records(topic)]

    def commit(self, group: str, topic: str, offset: int) -> None:
        with Admin(bootstrap_servers=self.address) as admin:
            admin.alter_consumer_group_offsets(group, {TopicPartition(topic, 0): offset})

    def committed(self, group: str) -> dict[str, int]:
        with Admin(bootstrap_servers=self.address) as admin:
            return {str(tp): at.offset for tp, at in admin.list_consumer_group_offsets(group).items()}


@pytest.fixture
def sides() -> Iterator[tuple[Side, Side]]:
    """The source and the target cluster."""
    with Broker() as source, Broker() as target:
        yield Side(source.bootstrap_servers), Side(target.bootstrap_servers)


Carry = Callable[..., Mirror]


@pytest.fixture
def carry(sides: tuple[Side, Side]) -> Carry:
    """Run a mirror once to its end."""
    source, target = ({"bootstrap.servers": side.address} for side in sides)

    def carry_it(selection: Selection = Selection(), **more: Any) -> Mirror:  # noqa: B008
        messages: list[str] = more.pop("messages", [])
        mirror = Mirror(
            MirrorSettings(source=source, target=target, selection=selection, once=True, **more),
            report_line=messages.append,
        )
        mirror.run()
        return mirror

    return carry_it
