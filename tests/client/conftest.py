"""A broker for the tests of the clients, and topics on it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest

import ottla
from ottla import Admin, NewTopic
from tests.patience import eventually as eventually

NewTopicName = Callable[..., str]


def fresh_name() -> str:
    """An unused topic name."""
    return f"topic-{uuid.uuid4().hex[:8]}"


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker in a separate process: other tests inject faults into the file calls of this process."""
    path = tmp_path_factory.mktemp("broker")
    with ottla.Broker(path, process=True, log_retention_ms=-1) as broker:  # records of any age stay
        yield broker.bootstrap_servers


@pytest.fixture(scope="session")
def admin(servers: str) -> Iterator[Admin]:
    with Admin(bootstrap_servers=servers) as client:
        yield client


@pytest.fixture(scope="session")
def new_topic(admin: Admin) -> NewTopicName:
    """Creates a topic and returns its name."""

    def create(partitions: int = 1, **configs: object) -> str:
        name = fresh_name()
        settings = {key.replace("_", "."): str(value) for key, value in configs.items()}
        admin.create_topics([NewTopic(name, partitions, 1, settings)])
        return name

    return create


@pytest.fixture
def topic(new_topic: NewTopicName) -> str:
    """A topic of one partition."""
    return new_topic()


@pytest.fixture(scope="module")
def module_topic(new_topic: NewTopicName) -> str:
    """A topic of one partition that the tests of a module share."""
    return new_topic()
