"""Fixtures for pytest, loaded by `-p ottla.testing` or by `pytest_plugins = ["ottla.testing.plugin"]`.

One broker serves all tests of a process; each test has topics of its own. Ottla is imported when a test first uses a
fixture; under pytest-xdist each worker has its broker.
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
    from ottla.testing.registry import TestedRegistry
    from ottla.testing.topic import Topic

STARTED: list[TestedBroker] = []
NUMBERS = itertools.count(1)
MOST_NAME = 200
"""The maximum length of the test's name in its topic's name; Kafka allows 249 characters in total."""


@pytest.fixture(scope="session")
def ottla_broker_settings() -> dict[str, Any]:
    """Return the arguments of `ottla.Broker` for the broker; define a fixture of this name to change them.

    `{"listen": "SASL_SSL://127.0.0.1:0", "users": {"alice": "s3cret"}}` enables TLS and logins.
    """
    return {}


@pytest.fixture(scope="session")
def ottla_broker(ottla_broker_settings: dict[str, Any]) -> Iterator[TestedBroker]:
    """Return a broker in this process, on a free port, until the last test ends: `ottla_broker.bootstrap_servers`."""
    from ottla.uncollected import uncollected

    with uncollected():  # here and below: the program under test may have many objects for the collector
        from ottla.testing.broker import TestedBroker

    with TestedBroker(**ottla_broker_settings) as broker:
        STARTED.append(broker)
        broker.is_shared = True
        yield broker
        broker.is_shared = False
        STARTED.remove(broker)


@pytest.fixture(scope="session")
def ottla_cluster_settings() -> dict[str, Any]:
    """Return the arguments of `ottla.Cluster` for the cluster; define a fixture of this name to change them."""
    return {}


@pytest.fixture(scope="session")
def ottla_running_cluster(ottla_cluster_settings: dict[str, Any]) -> Iterator[TestedCluster]:
    """Return the cluster of all tests, in which nodes may be stopped; use `ottla_cluster` instead."""
    from ottla.testing.cluster import TestedCluster

    with TestedCluster(**ottla_cluster_settings) as cluster:
        yield cluster


@pytest.fixture
def ottla_cluster(ottla_running_cluster: TestedCluster) -> TestedCluster:
    """Three brokers in processes of their own until the last test ends; each one runs when a test starts.

     `ottla_cluster.kill(2)` kills one, `lose_leader(topic)` kills the leader, `start(2)` restarts one;
    `partition_off(2)` isolates one from the others, until `heal()`. The next test starts with all of them running
    again.
    """
    ottla_running_cluster.heal()
    missing = set(ottla_running_cluster.nodes) - set(ottla_running_cluster.running)
    ottla_running_cluster.start(*missing)
    return ottla_running_cluster


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown() -> None:
    """Remove all faults before producers flush their remaining records."""
    for broker in STARTED:
        broker.faults.clear()
        if not broker.is_running:
            broker.start()


@pytest.fixture(scope="session")
def ottla_admin(ottla_broker: TestedBroker) -> Iterator[Admin]:
    """Return an admin client of the broker."""
    from ottla.uncollected import uncollected

    with uncollected():
        from ottla import Admin

    with Admin(ottla_broker.client_settings()) as admin:
        yield admin


@pytest.fixture
def ottla_topic(ottla_broker: TestedBroker, ottla_admin: Admin, request: pytest.FixtureRequest) -> Iterator[Topic]:
    """Return a new topic with one partition, or with n by `@pytest.mark.parametrize("ottla_topic", [n], indirect=True)`."""
    with fresh_topic(ottla_admin, ottla_broker.client_settings(), request) as topic:
        yield topic


@pytest.fixture
def ottla_topics(
    ottla_broker: TestedBroker, ottla_admin: Admin, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Topic]]:
    """Return a function that creates topics, deleted after the test: `ottla_topics("orders", partitions=3)`.

    The name is used unchanged. An existing topic of that name, left by another test, raises Kafka's error.
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
        with suppress(UnknownTopicOrPartitionError):  # the test may have deleted it, or closed the broker
            ottla_admin.delete_topics([topic])


@pytest.fixture(scope="session")
def ottla_running_registry(ottla_broker: TestedBroker) -> Iterator[TestedRegistry]:
    """Return the schema registry of all tests; use `ottla_registry` instead."""
    from ottla.uncollected import uncollected

    with uncollected():
        from ottla.testing.registry import TestedRegistry

    with TestedRegistry(ottla_broker.client_settings()) as registry:
        yield registry


@pytest.fixture
def ottla_registry(ottla_running_registry: TestedRegistry) -> Iterator[TestedRegistry]:
    """Return a schema registry on the broker: `ottla_registry.url` for any client, `ottla_registry.client` for `ottla.schemas`.

    The subjects of a test are deleted at its end.
    """
    yield ottla_running_registry
    ottla_running_registry.clear()


@pytest.fixture
def ottla_cluster_topic(ottla_cluster: TestedCluster, request: pytest.FixtureRequest) -> Iterator[Topic]:
    """Return a new topic on the cluster, with replicas on up to three of its nodes."""
    from ottla import Admin

    with (
        Admin(ottla_cluster.client_settings()) as admin,
        fresh_topic(admin, ottla_cluster.client_settings(), request) as topic,
    ):
        yield topic


@contextmanager
def fresh_topic(admin: Admin, settings: dict[str, str], request: pytest.FixtureRequest) -> Iterator[Topic]:
    """Yield a topic with a name derived from the test, and delete it at the end."""
    from ottla.uncollected import uncollected

    with uncollected():
        from ottla import NewTopic
        from ottla.errors import UnknownTopicOrPartitionError
        from ottla.testing.topic import Topic

    name = f"{re.sub('[^a-zA-Z0-9._-]+', '-', request.node.name)[:MOST_NAME]}-{next(NUMBERS)}"
    admin.create_topics([NewTopic(name, num_partitions=getattr(request, "param", 1))])
    yield Topic(name, settings)
    with suppress(UnknownTopicOrPartitionError):  # the test may have deleted it, or closed the broker
        admin.delete_topics([name])


@pytest.fixture
def ottla_producer(ottla_broker: TestedBroker) -> Iterator[Producer]:
    """Return a producer, flushed at the end of the test at the latest."""
    from ottla.uncollected import uncollected

    with uncollected():
        from ottla import Producer

    with Producer(ottla_broker.client_settings()) as producer:
        yield producer


@pytest.fixture
def ottla_consumer(ottla_topic: Topic) -> Iterator[Consumer]:
    """Return a consumer that is subscribed to `ottla_topic` in a group of its own, and reads from the beginning."""
    from ottla.uncollected import uncollected

    with uncollected():
        from ottla import Consumer

    with Consumer(of_beginning(ottla_topic)) as consumer:
        consumer.subscribe([str(ottla_topic)])
        yield consumer


@pytest.fixture
def ottla_aio_producer(ottla_broker: TestedBroker) -> aio.Producer:
    """Return a producer for asyncio, for use with `async with`; it works with the event loop of any pytest plugin."""
    from ottla import aio

    return aio.Producer(ottla_broker.client_settings())


@pytest.fixture
def ottla_aio_consumer(ottla_topic: Topic) -> aio.Consumer:
    """Return a consumer for asyncio that is subscribed to `ottla_topic` from its beginning, for use with `async with`."""
    from ottla import aio

    consumer = aio.Consumer(of_beginning(ottla_topic))
    consumer.subscribe([str(ottla_topic)])
    return consumer


def of_beginning(topic: Topic) -> dict[str, Any]:
    """Return the settings of a consumer in a group of its own that reads from the beginning."""
    return {**topic.client_settings, "group.id": f"of-{topic}", "auto.offset.reset": "earliest"}
