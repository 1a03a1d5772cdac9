"""Fixtures for both brokers, each started once per test process, and for topics on them."""

from __future__ import annotations

import signal
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from interop.java_programs import quick_options
from ottla import Admin, Broker, NewTopic
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.spark.driver.class_archive import OPTIONS
from rivals import apache_kafka as rival
from rivals.kafka_cluster import kafka_node, wait_for
from tests.broker.wire import Wire
from tools.class_archive import QUICK, class_archive, driver_options

NewTopicName = Callable[[str], str]
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell sets this for background processes
    signal.signal(signal.SIGINT, signal.default_int_handler)
HERE = Path(__file__).parent
GROUP, TRANSACTION = 0, 1
LAST = {"test_official_connector", "test_tables"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run each file in one worker.

    Tests that start Spark run first and in the same worker, except a few that run last: otherwise the worker of all
    other tests would be idle at the end.
    """
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.xdist_group(("spark", group_of(item.path.stem), "spark at last")[when(item)]))
    items.sort(key=when)


def when(item: pytest.Item) -> int:
    """Return the position of a test: 0 for first, 1 for the middle, 2 for last."""
    if not starts_spark(item):
        return 1
    return 2 if item.path.stem in LAST else 0


def group_of(stem: str) -> str:
    """Return the xdist group of a test file: files that share a cluster run in one worker."""
    return "cluster" if stem.startswith("test_cluster") else stem


def starts_spark(item: pytest.Item) -> bool:
    return any("quick_drivers" in marker.args for marker in item.iter_markers("usefixtures"))


@pytest.fixture(scope="session", autouse=True)
def quick_java() -> Iterator[None]:
    """Make every Kafka broker and tool of the test session start in half the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rival, "options", quick_options())
        yield


@pytest.fixture(scope="session")
def apache_kafka() -> Iterator[str]:
    """The address of an Apache Kafka broker that no other test uses."""
    rival.fetch()
    with rival.apache_kafka() as kafka:
        yield kafka.bootstrap_servers


@pytest.fixture(scope="session")
def kafka_cluster() -> Iterator[rival.ApacheKafka]:
    """A combined controller and broker that other nodes can join, with all internal topics of the coordinators."""
    with kafka_node() as kafka:
        wait_for(lambda: all(coordinator_of(kafka, kind) >= 0 for kind in (GROUP, TRANSACTION)), "nobody coordinates")
        yield kafka


def coordinator_of(kafka: rival.ApacheKafka, kind: int) -> int:
    """Return the coordinator's node id. The first request creates its internal topic."""
    with Wire(kafka.bootstrap_servers) as wire:
        return int(wire.ask(FindCoordinatorRequest("any", kind), 2).node_id)


@pytest.fixture(scope="session")
def ottla_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory in which `ottla_broker` stores its topics."""
    return tmp_path_factory.mktemp("ottla")


@pytest.fixture(scope="session")
def ottla_broker(ottla_directory: Path) -> Iterator[str]:
    """The address of our broker, which runs in a separate process."""
    with Broker(ottla_directory, process=True) as broker:
        yield broker.bootstrap_servers


@pytest.fixture(scope="session", params=["ottla", "apache"])
def any_broker(request: pytest.FixtureRequest) -> str:
    """The address of our broker or of Apache Kafka's."""
    address: str = request.getfixturevalue("ottla_broker" if request.param == "ottla" else "apache_kafka")
    return address


@pytest.fixture(scope="session")
def quick_drivers() -> Iterator[None]:
    """Make every Spark driver of the test session start in half the time, including those of jobs and tools."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(OPTIONS, options_of_drivers())
        yield


def options_of_drivers() -> str:
    """Return the options with the class archive.

    On a machine that is too busy to build one, drivers start without it.
    """
    with suppress(subprocess.TimeoutExpired):
        return driver_options(class_archive())
    return QUICK


@pytest.fixture(scope="session")
def fresh_topic() -> NewTopicName:
    """Return a function that creates a topic of one partition at an address and returns its new name.

    Apache Kafka's controller responds before its broker has applied the change, so the function waits until the broker
    lists the topic.
    """

    def make(address: str) -> str:
        name = f"topic-{uuid.uuid4().hex[:8]}"
        with Admin(bootstrap_servers=address) as admin:
            admin.create_topics([NewTopic(name, num_partitions=1)])
            wait_for(lambda: name in admin.list_topics(), f"{name} is there")
        return name

    return make
