"""A topic of dead letters, and the rows in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ottla import Admin, Broker, Consumer, NewTopic, TopicPartition
from ottla.pipelines.dead_letters import DeadLetterTopic

TOPIC = "dead"


@contextmanager
def broker_of_letters() -> Iterator[Broker]:
    """A broker with the topic."""
    with Broker() as broker, Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(TOPIC, 1, 1)])
        yield broker


def topic_at(broker: Broker) -> DeadLetterTopic:
    """Return the topic as a pipeline has it."""
    return DeadLetterTopic(TOPIC, "p", {"bootstrap.servers": broker.bootstrap_servers})


def letters_at(broker: Broker) -> list[tuple[Any, str]]:
    """Return each row in the topic with its cause."""
    with Consumer(bootstrap_servers=broker.bootstrap_servers) as consumer:
        tp = TopicPartition(TOPIC, 0)
        consumer.assign([tp])
        consumer.seek_to_beginning(tp)
        found: list[Any] = []
        end = consumer.end_offsets([tp])[tp]
        while len(found) < end:
            found += consumer.poll(timeout=5)
    causes = [dict(one.headers)["__connect.errors.exception.message"] for one in found]
    return [(json.loads(one.raw_value), (cause or b"").decode()) for one, cause in zip(found, causes, strict=True)]
