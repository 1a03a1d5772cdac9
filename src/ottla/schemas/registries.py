"""The registry clients of one consumer or producer: given ones, and those that it opens for an address."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from ottla.schemas.clients import AsyncSchemaRegistryClient, SchemaRegistryClient
from ottla.schemas.registered_tables import RegisteredTables

EXAMPLE = "pass registry='http://localhost:8081', its settings as a dict, or a client of ottla.schemas"


class Registries:
    """Keeps the decoders of each registry, and closes the clients that it opened."""

    def __init__(self) -> None:
        self._blocking: dict[Any, tuple[SchemaRegistryClient, RegisteredTables]] = {}
        self._async: dict[Any, tuple[AsyncSchemaRegistryClient, RegisteredTables]] = {}
        self._opened: list[SchemaRegistryClient] = []
        self._opened_async: list[AsyncSchemaRegistryClient] = []

    def open_blocking(self, registry: Any) -> tuple[SchemaRegistryClient, RegisteredTables]:
        """Return the client for the argument `registry`, and its decoders."""
        key = registry_key(registry)
        if key not in self._blocking:
            client = registry
            if not isinstance(registry, SchemaRegistryClient):
                check_settings(registry, "SchemaRegistryClient")
                client = SchemaRegistryClient(registry)
                self._opened.append(client)
            self._blocking[key] = client, RegisteredTables(client.calls)
        return self._blocking[key]

    def open_async(self, registry: Any) -> tuple[AsyncSchemaRegistryClient, RegisteredTables]:
        """Return the asyncio client for the argument `registry`, and its decoders."""
        key = registry_key(registry)
        if key not in self._async:
            client = registry
            if not isinstance(registry, AsyncSchemaRegistryClient):
                check_settings(registry, "AsyncSchemaRegistryClient")
                client = AsyncSchemaRegistryClient(registry)
                self._opened_async.append(client)
            self._async[key] = client, RegisteredTables(client.calls)
        return self._async[key]

    def close_blocking(self) -> None:
        """Close the clients that were opened here."""
        while self._opened:
            self._opened.pop().close()
        self._blocking.clear()

    async def close_async(self) -> None:
        """Close the asyncio clients that were opened here."""
        while self._opened_async:
            await self._opened_async.pop().close()
        self._async.clear()


@contextmanager
def blocking_client(registry: Any) -> Iterator[SchemaRegistryClient]:
    """Yield the client for the argument `registry`; one that is opened here is closed afterwards."""
    registries = Registries()
    try:
        yield registries.open_blocking(registry)[0]
    finally:
        registries.close_blocking()


@asynccontextmanager
async def async_client(registry: Any) -> AsyncIterator[AsyncSchemaRegistryClient]:
    """Yield the asyncio client for the argument `registry`; one that is opened here is closed afterwards."""
    registries = Registries()
    try:
        yield registries.open_async(registry)[0]
    finally:
        await registries.close_async()


def registry_key(registry: Any) -> Any:
    """Return a hashable value for a client, an address or settings."""
    return repr(sorted(registry.items())) if isinstance(registry, Mapping) else registry


def check_settings(registry: Any, kind: str) -> None:
    """Raise TypeError for an argument that is neither an address nor settings."""
    if not isinstance(registry, str | Mapping):
        raise TypeError(f"registry = {registry!r}: must be an address, settings, or an ottla.schemas.{kind}; {EXAMPLE}")
