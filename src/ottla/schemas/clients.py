"""The registry clients: one that blocks and one for asyncio, over the same calls.

Each method runs a generator of `calls` and performs what it yields with httpx. A client may be used by many threads, or
by all tasks of one event loop.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from ottla.extras import extra
from ottla.schemas.calls import RegistryCalls
from ottla.schemas.config import RegistryConfig, registry_config
from ottla.schemas.exchange import Exchange, Pause, Reply, Request, TransportError, quoted
from ottla.schemas.values import RegisteredSchema, Schema, SchemaVersion, ServerConfig

with extra("schemas"):
    import httpx

T = TypeVar("T")


def client_options(config: RegistryConfig) -> dict[str, Any]:
    """Return the arguments of an httpx client."""
    return {
        "verify": True if config.verify is None else config.verify,
        "proxy": config.proxy,
        "timeout": 60.0 if config.timeout_s is None else config.timeout_s,
        "follow_redirects": True,
    }


def describe_failure(error: Exception) -> str:
    """Return why no response was received."""
    return str(error) or type(error).__name__


class SchemaRegistryClient:
    """Registers, reads and checks schemas; blocks until the registry answers.

    `SchemaRegistryClient({"url": "http://localhost:8081"})`. The settings are those of Confluent's client. Schemas are
    cached: each id is requested once.
    """

    def __init__(self, conf: Mapping[str, Any] | str) -> None:
        self._config = registry_config(conf)
        self._conf: Mapping[str, Any] = {"url": conf} if isinstance(conf, str) else dict(conf)
        self._calls = RegistryCalls(self._config, time.monotonic, random.random)
        self._http = httpx.Client(**client_options(self._config))

    @staticmethod
    def new_client(conf: Mapping[str, Any]) -> SchemaRegistryClient:
        """Return a client with these settings."""
        return SchemaRegistryClient(conf)

    @property
    def calls(self) -> RegistryCalls:
        """The calls as generators, for `run`."""
        return self._calls

    @property
    def cache_latest_ttl_s(self) -> float | None:
        """The setting `cache.latest.ttl.sec`."""
        return self._config.cache_latest_ttl_s

    def config(self) -> Mapping[str, Any]:
        """Return the settings as given."""
        return self._conf

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. The client cannot be used afterwards."""
        self._http.close()

    def clear_latest_caches(self) -> None:
        """Forget the latest versions, so that they are requested again."""
        self._calls.clear_latest_caches()

    def clear_caches(self) -> None:
        """Forget all results."""
        self._calls.clear_caches()

    def run(self, exchange: Exchange[T]) -> T:
        """Run a generator of calls to its end; return its result."""
        try:
            wanted = next(exchange)
            while True:
                try:
                    answer = self._perform(wanted)
                except httpx.HTTPError as error:
                    wanted = exchange.throw(TransportError(describe_failure(error)))
                else:
                    wanted = exchange.send(answer)
        except StopIteration as done:
            result: T = done.value
            return result

    def _perform(self, wanted: Request | Pause) -> Reply | None:
        if isinstance(wanted, Pause):
            time.sleep(wanted.seconds)
            return None
        response = self._http.request(wanted.method, wanted.url, headers=wanted.headers, content=wanted.content)
        return Reply(response.status_code, response.content)

    def register_schema(self, subject_name: str, schema: Schema, normalize_schemas: bool = False) -> int:
        """Register a schema, if the subject does not have it yet; return its id."""
        found = self.run(self._calls.register(subject_name, schema, normalize_schemas))
        assert found.schema_id is not None
        return found.schema_id

    def register_schema_full_response(
        self, subject_name: str, schema: Schema, normalize_schemas: bool = False
    ) -> RegisteredSchema:
        """Register a schema, if the subject does not have it yet; return it with id, and guid if the registry has guids."""
        return self.run(self._calls.register(subject_name, schema, normalize_schemas))

    def get_schema(
        self,
        schema_id: int,
        subject_name: str | None = None,
        fmt: str | None = None,
        reference_format: str | None = None,
    ) -> Schema:
        """Return the schema of an id."""
        return (self.run(self._calls.schema_by_id(schema_id, subject_name, fmt, reference_format))).schema

    def get_schema_by_guid(self, guid: str, fmt: str | None = None) -> Schema:
        """Return the schema of a guid."""
        return (self.run(self._calls.schema_by_guid(guid, fmt))).schema

    def get_schema_types(self) -> list[str]:
        """Return the types of schemas that the registry supports."""
        return self.run(self._calls.schema_types())

    def get_subjects_by_schema_id(
        self,
        schema_id: int,
        subject_name: str | None = None,
        deleted: bool = False,
        offset: int = 0,
        limit: int = -1,
    ) -> list[str]:
        """Return the subjects that have the schema of an id."""
        query = {"subject": subject_name, "deleted": deleted, "offset": offset, "limit": limit}
        return self.run(self._calls.subjects_by_id(schema_id, query))

    def get_schema_versions(
        self,
        schema_id: int,
        subject_name: str | None = None,
        deleted: bool = False,
        offset: int = 0,
        limit: int = -1,
    ) -> list[SchemaVersion]:
        """Return the versions of subjects that have the schema of an id."""
        query = {"subject": subject_name, "deleted": deleted, "offset": offset, "limit": limit}
        return self.run(self._calls.versions_by_id(schema_id, query))

    def lookup_schema(
        self,
        subject_name: str,
        schema: Schema,
        normalize_schemas: bool = False,
        fmt: str | None = None,
        deleted: bool = False,
    ) -> RegisteredSchema:
        """Return the version of a subject that has this schema."""
        return self.run(self._calls.lookup(subject_name, schema, normalize_schemas, fmt, deleted))

    def get_subjects(
        self,
        subject_prefix: str | None = None,
        deleted: bool = False,
        deleted_only: bool = False,
        offset: int = 0,
        limit: int = -1,
    ) -> list[str]:
        """Return the names of all subjects."""
        query = {
            "subjectPrefix": subject_prefix,
            "deleted": deleted,
            "deletedOnly": deleted_only,
            "offset": offset,
            "limit": limit,
        }
        return self.run(self._calls.subjects(query))

    def delete_subject(self, subject_name: str, permanent: bool = False) -> list[int]:
        """Delete a subject; return its versions. With `permanent` they cannot be restored."""
        return self.run(self._calls.delete_subject(subject_name, permanent))

    def get_latest_version(self, subject_name: str, fmt: str | None = None) -> RegisteredSchema:
        """Return the newest version of a subject, cached for `cache.latest.ttl.sec`."""
        return self.run(self._calls.latest(subject_name, fmt))

    def get_latest_with_metadata(
        self, subject_name: str, metadata: Mapping[str, str], deleted: bool = False, fmt: str | None = None
    ) -> RegisteredSchema:
        """Return the newest version of a subject with these properties in its metadata."""
        return self.run(self._calls.latest_with_metadata(subject_name, metadata, deleted, fmt))

    def get_version(
        self,
        subject_name: str,
        version: int | Literal["latest"] = "latest",
        deleted: bool = False,
        fmt: str | None = None,
    ) -> RegisteredSchema:
        """Return a version of a subject."""
        return self.run(self._calls.version(subject_name, version, deleted, fmt))

    def get_referenced_by(
        self, subject_name: str, version: int | Literal["latest"] = "latest", offset: int = 0, limit: int = -1
    ) -> list[int]:
        """Return the ids of schemas that reference a version."""
        return self.run(self._calls.referenced_by(subject_name, version, {"offset": offset, "limit": limit}))

    def get_versions(self, subject_name: str, deleted: bool = False, offset: int = 0, limit: int = -1) -> list[int]:
        """Return the versions of a subject."""
        query = {"deleted": deleted, "offset": offset, "limit": limit}
        return self.run(self._calls.versions(subject_name, query))

    def delete_version(self, subject_name: str, version: int | Literal["latest"], permanent: bool = False) -> int:
        """Delete a version; return its number. With `permanent` it cannot be restored."""
        return self.run(self._calls.delete_version(subject_name, version, permanent))

    def set_compatibility(self, subject_name: str | None = None, level: str | None = None) -> str | None:
        """Set the compatibility level of a subject, or the global one; return it."""
        return (self.run(self._calls.set_config(subject_name, ServerConfig(compatibility=level)))).compatibility

    def get_compatibility(self, subject_name: str | None = None) -> str | None:
        """Return the compatibility level that holds for a subject, or the global one."""
        return (self.run(self._calls.get_config(subject_name, with_default=True))).compatibility_level

    def test_compatibility(
        self,
        subject_name: str,
        schema: Schema,
        version: int | str = "latest",
        normalize: bool = False,
        verbose: bool = False,
    ) -> bool:
        """Return True if a schema is compatible with a version of a subject."""
        path = f"{quoted(subject_name)}/versions/{quoted(version)}"
        return (self.run(self._calls.check(path, schema, normalize, verbose)))[0]

    def test_compatibility_all_versions(
        self, subject_name: str, schema: Schema, normalize: bool = False, verbose: bool = False
    ) -> bool:
        """Return True if a schema is compatible with a subject, by its compatibility level."""
        path = f"{quoted(subject_name)}/versions"
        return (self.run(self._calls.check(path, schema, normalize, verbose)))[0]

    def explain_compatibility(self, subject_name: str, schema: Schema, normalize: bool = False) -> list[str]:
        """Return why a schema is not compatible with a subject; an empty list if it is."""
        path = f"{quoted(subject_name)}/versions"
        compatible, messages = self.run(self._calls.check(path, schema, normalize, True))
        return [] if compatible else list(messages) or ["the registry gave no reason"]

    def set_config(self, subject_name: str | None = None, config: ServerConfig | None = None) -> ServerConfig:
        """Set the config of a subject, or the global one."""
        return self.run(self._calls.set_config(subject_name, config or ServerConfig()))

    def delete_config(self, subject_name: str | None = None) -> ServerConfig:
        """Delete the config of a subject, so that the global one holds; return the deleted one."""
        return self.run(self._calls.delete_config(subject_name))

    def get_config(self, subject_name: str | None = None) -> ServerConfig:
        """Return the config of a subject, or the global one."""
        return self.run(self._calls.get_config(subject_name))

    def get_mode(self, subject_name: str) -> str:
        """Return the mode of a subject: READWRITE, READONLY or IMPORT."""
        return self.run(self._calls.get_mode(subject_name))

    def update_mode(self, subject_name: str, mode: str, force: bool = False) -> str:
        """Set the mode of a subject."""
        return self.run(self._calls.set_mode(subject_name, mode, force))

    def delete_mode(self, subject_name: str) -> str:
        """Delete the mode of a subject, so that the global one holds."""
        return self.run(self._calls.delete_mode(subject_name))

    def get_global_mode(self) -> str:
        """Return the global mode."""
        return self.run(self._calls.get_mode(None))

    def update_global_mode(self, mode: str, force: bool = False) -> str:
        """Set the global mode."""
        return self.run(self._calls.set_mode(None, mode, force))

    def get_contexts(self, offset: int = 0, limit: int = -1) -> list[str]:
        """Return the names of all contexts."""
        return self.run(self._calls.contexts({"offset": offset, "limit": limit}))


class AsyncSchemaRegistryClient:
    """Registers, reads and checks schemas in asyncio. Methods that wait are coroutines.

    `AsyncSchemaRegistryClient({"url": "http://localhost:8081"})`. The settings are those of Confluent's client. Schemas are
    cached: each id is requested once.
    """

    def __init__(self, conf: Mapping[str, Any] | str) -> None:
        self._config = registry_config(conf)
        self._conf: Mapping[str, Any] = {"url": conf} if isinstance(conf, str) else dict(conf)
        self._calls = RegistryCalls(self._config, time.monotonic, random.random)
        self._http = httpx.AsyncClient(**client_options(self._config))

    @staticmethod
    def new_client(conf: Mapping[str, Any]) -> AsyncSchemaRegistryClient:
        """Return a client with these settings."""
        return AsyncSchemaRegistryClient(conf)

    @property
    def calls(self) -> RegistryCalls:
        """The calls as generators, for `run`."""
        return self._calls

    @property
    def cache_latest_ttl_s(self) -> float | None:
        """The setting `cache.latest.ttl.sec`."""
        return self._config.cache_latest_ttl_s

    def config(self) -> Mapping[str, Any]:
        """Return the settings as given."""
        return self._conf

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections. The client cannot be used afterwards."""
        await self._http.aclose()

    def clear_latest_caches(self) -> None:
        """Forget the latest versions, so that they are requested again."""
        self._calls.clear_latest_caches()

    def clear_caches(self) -> None:
        """Forget all results."""
        self._calls.clear_caches()

    async def run(self, exchange: Exchange[T]) -> T:
        """Run a generator of calls to its end; return its result."""
        try:
            wanted = next(exchange)
            while True:
                try:
                    answer = await self._perform(wanted)
                except httpx.HTTPError as error:
                    wanted = exchange.throw(TransportError(describe_failure(error)))
                else:
                    wanted = exchange.send(answer)
        except StopIteration as done:
            result: T = done.value
            return result

    async def _perform(self, wanted: Request | Pause) -> Reply | None:
        if isinstance(wanted, Pause):
            await asyncio.sleep(wanted.seconds)
            return None
        response = await self._http.request(wanted.method, wanted.url, headers=wanted.headers, content=wanted.content)
        return Reply(response.status_code, response.content)

    async def register_schema(self, subject_name: str, schema: Schema, normalize_schemas: bool = False) -> int:
        """Register a schema, if the subject does not have it yet; return its id."""
        found = await self.run(self._calls.register(subject_name, schema, normalize_schemas))
        assert found.schema_id is not None
        return found.schema_id

    async def register_schema_full_response(
        self, subject_name: str, schema: Schema, normalize_schemas: bool = False
    ) -> RegisteredSchema:
        """Register a schema, if the subject does not have it yet; return it with id, and guid if the registry has guids."""
        return await self.run(self._calls.register(subject_name, schema, normalize_schemas))

    async def get_schema(
        self,
        schema_id: int,
        subject_name: str | None = None,
        fmt: str | None = None,
        reference_format: str | None = None,
    ) -> Schema:
        """Return the schema of an id."""
        return (await self.run(self._calls.schema_by_id(schema_id, subject_name, fmt, reference_format))).schema

    async def get_schema_by_guid(self, guid: str, fmt: str | None = None) -> Schema:
        """Return the schema of a guid."""
        return (await self.run(self._calls.schema_by_guid(guid, fmt))).schema

    async def get_schema_types(self) -> list[str]:
        """Return the types of schemas that the registry supports."""
        return await self.run(self._calls.schema_types())

    async def get_subjects_by_schema_id(
        self,
        schema_id: int,
        subject_name: str | None = None,
        deleted: bool = False,
        offset: int = 0,
        limit: int = -1,
    ) -> list[str]:
        """Return the subjects that have the schema of an id."""
        query = {"subject": subject_name, "deleted": deleted, "offset": offset, "limit": limit}
        return await self.run(self._calls.subjects_by_id(schema_id, query))

    async def get_schema_versions(
        self,
        schema_id: int,
        subject_name: str | None = None,
        deleted: bool = False,
        offset: int = 0,
        limit: int = -1,
    ) -> list[SchemaVersion]:
        """Return the versions of subjects that have the schema of an id."""
        query = {"subject": subject_name, "deleted": deleted, "offset": offset, "limit": limit}
        return await self.run(self._calls.versions_by_id(schema_id, query))

    async def lookup_schema(
        self,
        subject_name: str,
        schema: Schema,
        normalize_schemas: bool = False,
        fmt: str | None = None,
        deleted: bool = False,
    ) -> RegisteredSchema:
        """Return the version of a subject that has this schema."""
        return await self.run(self._calls.lookup(subject_name, schema, normalize_schemas, fmt, deleted))

    async def get_subjects(
        self,
        subject_prefix: str | None = None,
        deleted: bool = False,
        deleted_only: bool = False,
        offset: int = 0,
        limit: int = -1,
    ) -> list[str]:
        """Return the names of all subjects."""
        query = {
            "subjectPrefix": subject_prefix,
            "deleted": deleted,
            "deletedOnly": deleted_only,
            "offset": offset,
            "limit": limit,
        }
        return await self.run(self._calls.subjects(query))

    async def delete_subject(self, subject_name: str, permanent: bool = False) -> list[int]:
        """Delete a subject; return its versions. With `permanent` they cannot be restored."""
        return await self.run(self._calls.delete_subject(subject_name, permanent))

    async def get_latest_version(self, subject_name: str, fmt: str | None = None) -> RegisteredSchema:
        """Return the newest version of a subject, cached for `cache.latest.ttl.sec`."""
        return await self.run(self._calls.latest(subject_name, fmt))

    async def get_latest_with_metadata(
        self, subject_name: str, metadata: Mapping[str, str], deleted: bool = False, fmt: str | None = None
    ) -> RegisteredSchema:
        """Return the newest version of a subject with these properties in its metadata."""
        return await self.run(self._calls.latest_with_metadata(subject_name, metadata, deleted, fmt))

    async def get_version(
        self,
        subject_name: str,
        version: int | Literal["latest"] = "latest",
        deleted: bool = False,
        fmt: str | None = None,
    ) -> RegisteredSchema:
        """Return a version of a subject."""
        return await self.run(self._calls.version(subject_name, version, deleted, fmt))

    async def get_referenced_by(
        self, subject_name: str, version: int | Literal["latest"] = "latest", offset: int = 0, limit: int = -1
    ) -> list[int]:
        """Return the ids of schemas that reference a version."""
        return await self.run(self._calls.referenced_by(subject_name, version, {"offset": offset, "limit": limit}))

    async def get_versions(
        self, subject_name: str, deleted: bool = False, offset: int = 0, limit: int = -1
    ) -> list[int]:
        """Return the versions of a subject."""
        query = {"deleted": deleted, "offset": offset, "limit": limit}
        return await self.run(self._calls.versions(subject_name, query))

    async def delete_version(self, subject_name: str, version: int | Literal["latest"], permanent: bool = False) -> int:
        """Delete a version; return its number. With `permanent` it cannot be restored."""
        return await self.run(self._calls.delete_version(subject_name, version, permanent))

    async def set_compatibility(self, subject_name: str | None = None, level: str | None = None) -> str | None:
        """Set the compatibility level of a subject, or the global one; return it."""
        return (await self.run(self._calls.set_config(subject_name, ServerConfig(compatibility=level)))).compatibility

    async def get_compatibility(self, subject_name: str | None = None) -> str | None:
        """Return the compatibility level that holds for a subject, or the global one."""
        return (await self.run(self._calls.get_config(subject_name, with_default=True))).compatibility_level

    async def test_compatibility(
        self,
        subject_name: str,
        schema: Schema,
        version: int | str = "latest",
        normalize: bool = False,
        verbose: bool = False,
    ) -> bool:
        """Return True if a schema is compatible with a version of a subject."""
        path = f"{quoted(subject_name)}/versions/{quoted(version)}"
        return (await self.run(self._calls.check(path, schema, normalize, verbose)))[0]

    async def test_compatibility_all_versions(
        self, subject_name: str, schema: Schema, normalize: bool = False, verbose: bool = False
    ) -> bool:
        """Return True if a schema is compatible with a subject, by its compatibility level."""
        path = f"{quoted(subject_name)}/versions"
        return (await self.run(self._calls.check(path, schema, normalize, verbose)))[0]

    async def explain_compatibility(self, subject_name: str, schema: Schema, normalize: bool = False) -> list[str]:
        """Return why a schema is not compatible with a subject; an empty list if it is."""
        path = f"{quoted(subject_name)}/versions"
        compatible, messages = await self.run(self._calls.check(path, schema, normalize, True))
        return [] if compatible else list(messages) or ["the registry gave no reason"]

    async def set_config(self, subject_name: str | None = None, config: ServerConfig | None = None) -> ServerConfig:
        """Set the config of a subject, or the global one."""
        return await self.run(self._calls.set_config(subject_name, config or ServerConfig()))

    async def delete_config(self, subject_name: str | None = None) -> ServerConfig:
        """Delete the config of a subject, so that the global one holds; return the deleted one."""
        return await self.run(self._calls.delete_config(subject_name))

    async def get_config(self, subject_name: str | None = None) -> ServerConfig:
        """Return the config of a subject, or the global one."""
        return await self.run(self._calls.get_config(subject_name))

    async def get_mode(self, subject_name: str) -> str:
        """Return the mode of a subject: READWRITE, READONLY or IMPORT."""
        return await self.run(self._calls.get_mode(subject_name))

    async def update_mode(self, subject_name: str, mode: str, force: bool = False) -> str:
        """Set the mode of a subject."""
        return await self.run(self._calls.set_mode(subject_name, mode, force))

    async def delete_mode(self, subject_name: str) -> str:
        """Delete the mode of a subject, so that the global one holds."""
        return await self.run(self._calls.delete_mode(subject_name))

    async def get_global_mode(self) -> str:
        """Return the global mode."""
        return await self.run(self._calls.get_mode(None))

    async def update_global_mode(self, mode: str, force: bool = False) -> str:
        """Set the global mode."""
        return await self.run(self._calls.set_mode(None, mode, force))

    async def get_contexts(self, offset: int = 0, limit: int = -1) -> list[str]:
        """Return the names of all contexts."""
        return await self.run(self._calls.contexts({"offset": offset, "limit": limit}))
