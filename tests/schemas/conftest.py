from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

import ottla
from ottla.schemas import SchemaRegistryClient
from tests.schemas.small_registry import SmallRegistry, small_registry


@pytest.fixture
def registry() -> Iterator[SmallRegistry]:
    with small_registry() as served:
        yield served


@pytest.fixture
def client(registry: SmallRegistry) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.url}) as made:
        yield made


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker in a separate process."""
    with ottla.Broker(tmp_path_factory.mktemp("schemas"), process=True) as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def topic(servers: str) -> str:
    """A topic of one partition."""
    name = f"orders-{uuid4().hex[:8]}"
    with ottla.Admin(bootstrap_servers=servers) as admin:
        admin.create_topics([ottla.NewTopic(name, 1, 1)])
    return name
