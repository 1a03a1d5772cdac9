from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from tests.broker.kafka_python_sockets import kafka_python_sockets_closed
from tests.broker.wire import Wire


@pytest.fixture(autouse=True)
def sockets_of_kafka_python_are_closed() -> Iterator[None]:
    """Close sockets that a client of kafka-python leaves open in a test."""
    with kafka_python_sockets_closed():
        yield


@pytest.fixture
def broker() -> Iterator[Broker]:
    """A broker with an empty directory."""
    with Broker() as broker:
        yield broker


@pytest.fixture
def wire(broker: Broker) -> Iterator[Wire]:
    """A connection to it."""
    with Wire(broker.bootstrap_servers) as wire:
        yield wire
