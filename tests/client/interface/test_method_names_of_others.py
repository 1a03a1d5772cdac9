"""Every method of the other clients for Python, called on ours: it is there, or the error says what to call."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import aiokafka
import aiokafka.admin
import confluent_kafka
import kafka
import pytest
from confluent_kafka.admin import AdminClient

from ottla import Admin, Consumer, Producer, aio
from ottla.client.interface import method_names as other_names

ALIKE: dict[tuple[type, type], tuple[Any, ...]] = {
    (Producer, aio.Producer): (confluent_kafka.Producer, kafka.KafkaProducer, aiokafka.AIOKafkaProducer),
    (Consumer, aio.Consumer): (confluent_kafka.Consumer, kafka.KafkaConsumer, aiokafka.AIOKafkaConsumer),
    (Admin, aio.Admin): (AdminClient, kafka.KafkaAdminClient, aiokafka.admin.AIOKafkaAdminClient),
}


def methods(client: type) -> set[str]:
    return {name for name in dir(client) if not name.startswith("_") and callable(getattr(client, name, None))}


def missing() -> Iterator[Any]:
    """Our class, and a name that another client has and it has not."""
    for ours, others in ALIKE.items():
        for name in sorted(set().union(*map(methods, others)).difference(*map(methods, ours))):
            yield from (pytest.param(one, name, id=f"{one.__module__}.{name}") for one in ours)


@pytest.mark.parametrize(("ours", "name"), list(missing()))
def test_a_method_of_another_client_is_explained(ours: Any, name: str) -> None:
    client = ours.__new__(ours)
    with pytest.raises(AttributeError, match=rf"^'{ours.__name__}' object has no attribute '{name}': .{{10}}"):
        getattr(client, name)
    assert not hasattr(client, name)
    assert not hasattr(ours, name)


def test_produce_is_send() -> None:
    with pytest.raises(AttributeError, match=re.escape("'produce': call send(topic, value, key=…, on_delivery=…)")):
        Producer.__new__(Producer).produce  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("ours", [each for pair in ALIKE for each in pair], ids=lambda one: one.__module__)
def test_every_remedy_names_methods_that_exist(ours: type) -> None:
    table = getattr(other_names, ours.__name__.upper())
    for name, remedy in table.items():
        called = re.findall(r"(?<![\w.])(?:Admin\.)?(\w+)\(", re.sub(r"\(async with.*?\)", "", remedy))
        homes = (ours, Admin)
        assert all(any(hasattr(home, each) for home in homes) for each in called if each not in OTHER), (name, called)


OTHER = {"result", "records", "partitions"}
"""Methods of what a client's calls return."""
