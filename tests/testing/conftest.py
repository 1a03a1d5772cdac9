"""A broker with fault injection, shared by the tests of a file."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from ottla import Admin, NewTopic, Producer
from ottla.testing.broker import TestedBroker
from ottla.testing.topic import Topic

NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def one_broker() -> Iterator[TestedBroker]:
    with TestedBroker() as broker:
        yield broker


@pytest.fixture
def broker(one_broker: TestedBroker) -> Iterator[TestedBroker]:
    yield one_broker
    one_broker.faults.clear()


@pytest.fixture
def topic(broker: TestedBroker) -> Topic:
    with Admin(broker.client_settings()) as admin:
        name = f"orders-{next(NUMBERS)}"
        admin.create_topics([NewTopic(name)])
        return Topic(name, broker.client_settings())


@pytest.fixture
def producer(broker: TestedBroker) -> Iterator[Producer]:
    with Producer({**broker.client_settings(), "retry.backoff.ms": 10}) as producer:
        yield producer
