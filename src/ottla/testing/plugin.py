"""Fixtures for pytest, loaded by `-p ottla.testing` or by `pytest_plugins = ["ottla.testing.plugin"]`. One broker serves all tests of a process, each has topics of its own.

Nothing of Ottla is loaded before a test asks for a fixture; under pytest-xdist each worker has its broker.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ottla import Admin, Consumer, Producer, aio
    from ottla.testing.broker import TestedBroker
    from ottla.testing.cluster import TestedCluster
    from ottla.testing.topic import Topic

STARTED: list[TestedBroker] = []
NUMBERS = itertools.count(1)
MOST_NAME = 200
"""Characters of a test's name in that of its topic; Kafka takes 249 in all."""


@pytest.fixture(scope="session")
def ottla_broker_settings() -> dict[str, Any]:
    """What the broker is started with: define a fixture of this name, and return arguments of `ottla.Broker`.

    `{"listen": "SASL_SSL://127.0.0.1:0", "users": {"alice": "s3cret"}}` has TLS and logins.
    """
    return {}


@pytest.fixture(scope="session")
def ottla_broker(ottla_broker_settings: dict[str, Any]) -> Iterator[TestedBroker]:
    """A broker in this process, on a free port, until the last test is over: `ottla_broker.bootstrap_servers`."""
    from ottla.uncollected import uncollected

    with uncollected():  # here as below: a program under test holds much that the collector would walk through
        from ottla.testing.broker import TestedBroker

    with TestedBroker(**ottla_broker_settings) as broker:
        STARTED.append(broker)
        broker.is_shared = True
        yield broker
        broker.is_shared = False
        STARTED.remove(broker)


@pytest.fixture(scope="session")
def ottla_cluster_settings() -> dict[str, Any]:
    """What the cluster is started with: define a fixture of this name, and return arguments of `ottla.Cluster`."""
    return {}


@pytest.fixture(scope="session")
def ottla_running_cluster(ottla_cluster_settings: dict[str, Any]) -> Iterator[TestedCluster]:
    """The cluster of all tests, in which nodes may be away: ask for `ottla_cluster`."""
    from ottla.testing.cluster import TestedCluster

    with TestedCluster(**ottla_cluster_settings) as cluster:
        yield cluster


@pytest.fixture
def ottla_cluster(ottla_running_cluster: TestedCluster) -> TestedCluster:
    """Three brokers in processes of their own until the last test is over, each of which runs when a test begins.

    `ottla_cluster.kill(2)` kills one, `lose_leader(topic)` the one that leads, and `start(2)` brings it back; `partition_off(2)` cuts
    one off from the others, until `heal()`.
    The next test finds all of them again.
    """
    ottla_running_cluster.heal()
    missing = set(ottla_running_cluster.nodes) - set(ottla_running_cluster.running)
    ottla_running_cluster.start(*missing)
    return ottla_running_cluster


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown() -> None:
    """Undo what went wrong on purpose, before producers send what they still have."""
    for broker in STARTED:
        broker.faults.clear()
        if not broker.is_running:
            broker.start()


@pytest.fixture(scope="session")
def ottla_admin(ottla_broker: TestedBroker) -> Iterator[Admin]:
    """An admin client of the broker."""
    from ottla.uncollected import uncollected

    with uncollected():
        from ottla import Admin

    with Admin(ottla_broker.client_settings()) as admin:
        yield admin


@pytest.fixture
def ottla_topic(ottla_broker: TestedBroker, ottla_admin: Admin, request: pytest.FixtureRequest) -> Iterator[Topic]:
    """A new topic of one partition, or of as many as `@pytest.mark.parametrize("ottla_topic", [3], indirect=True)` says."""
    with fresh_topic(ottla_admin, ottla_broker.client_settings(), request) as topic:
        yield topic


@pytest.fixture
def ottla_topics(
    ottla_broker: TestedBroker, ottla_admin: Admin, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Topic]]:
    """A function that creates topics, which are deleted after the test: `ottla_topics("orders", partitions=3)`.

    The name is the given one. A topic of that name that another test has left is an error of Kafka's.
    """
    from ottla.uncollected import uncollected

    with uncollected():
        from ottla import NewTopic
        from ottla.errors import UnknownTopicOrPartitionError
        from ottla.testing.topic import Topic

    made: list[Topic] = []

    def create(name: str, *, partitions: int = 1, configs: Mapping[str, str] | None = None) -> Topic:
        ottla_admin.create_topics([NewTopic(name, num_partitions=partitions, configs=dict(configs or {}))])
        made.append(Topic(name, ottla_broker.client_settings()))
        return made[-1]

    yield create
    for topic in made:
        with suppress(UnknownTopicOrPartitionError):  # the test has deleted it, or closed the broker
            ottla_admin.delete_topics([topic])


@pytest.fixture
def ottla_cluster_topic(ottla_cluster: TestedCluster, request: pytest.FixtureRequest) -> Iterator[Topic]:
    """The same on the cluster, with a copy on up to three of its nodes."""
    from ottla import Admin

    with (
        Admin(ottla_cluster.client_settings()) as admin,
        fresh_topic(admin, ottla_cluster.client_settings(), request) as topic,
    ):
        yield topic


@contextmanager
def fresh_topic(admin: Admin, settings: dict[str, str], request: pytest.FixtureRequest) -> Iterator[Topic]:
    """A topic that is named after the test, for as long as that lasts."""
    from ottla.uncollected import uncollected

    with uncollected():
        from ottla import NewTopic
        from ottla.errors import UnknownTopicOrPartitionError
        from ottla.testing.topic import Topic

    name = f"{re.sub('[^a-zA-Z0-9._-]+', '-', request.node.name)[:MOST_NAME]}-{next(NUMBERS)}"
    admin.create_topics([NewTopic(name, num_partitions=getattr(request, "param", 1))])
    yield Topic(name, settings)
    with suppress(UnknownTopicOrPartitionError):  # the test has deleted it, or closed the broker
        admin.delete_topics([name])


@pytest.fixture
def ottla_producer(ottla_broker: TestedBroker) -> Iterator[Producer]:
    """A producer, which sends what it has when the test is over at the latest."""
    from ottla.uncollected import uncollected

    with uncollected():
        from ottla import Producer

    with Producer(ottla_broker.client_settings()) as producer:
        yield producer


@pytest.fixture
def ottla_consumer(ottla_topic: Topic) -> Iterator[Consumer]:
    """A consumer that has subscribed to `ottla_topic` in a group of its own, and reads from the beginning."""
    from ottla.uncollected import uncollected

    with uncollected():
        from ottla import Consumer

    with Consumer(of_beginning(ottla_topic)) as consumer:
        consumer.subscribe([str(ottla_topic)])
        yield consumer


@pytest.fixture
def ottla_aio_producer(ottla_broker: TestedBroker) -> aio.Producer:
    """A producer for asyncio, to be used by `async with`: whichever plugin runs the test, the event loop is the test's."""
    from ottla import aio

    return aio.Producer(ottla_broker.client_settings())


@pytest.fixture
def ottla_aio_consumer(ottla_topic: Topic) -> aio.Consumer:
    """A consumer for asyncio that has subscribed to `ottla_topic` from its beginning, to be used by `async with`."""
    from ottla import aio

    consumer = aio.Consumer(of_beginning(ottla_topic))
    consumer.subscribe([str(ottla_topic)])
    return consumer


def of_beginning(topic: Topic) -> dict[str, Any]:
    """The settings of a consumer in a group of its own, which reads all."""
    return {**topic.client_settings, "group.id": f"of-{topic}", "auto.offset.reset": "earliest"}
