"""A broker for all tests of a file, and a registry with a topic of its own for each test."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from ottla import Broker
from tests.registry.running import RegistryClient, running_registry


@pytest.fixture(scope="module")
def broker_address() -> Iterator[str]:
    """The address of a broker whose groups start without a delay."""
    with Broker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture(scope="module")
def shared_registry(broker_address: str) -> Iterator[RegistryClient]:
    """A registry for all tests of a file, which use subjects of their own."""
    with running_registry(broker_address, topic=f"_schemas-{uuid.uuid4()}", group=f"sr-{uuid.uuid4()}") as server:
        yield RegistryClient(server.address)


@pytest.fixture
def registry(broker_address: str) -> Iterator[RegistryClient]:
    """An empty registry."""
    with running_registry(broker_address, topic=f"_schemas-{uuid.uuid4()}", group=f"sr-{uuid.uuid4()}") as server:
        yield RegistryClient(server.address)
