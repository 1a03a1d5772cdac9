"""The requests of a registry client, and the caches of their results. Pure: see `exchange`.

An id or a guid always means the same schema, so that these are cached without a time limit. The latest version of a
subject is cached for `cache.latest.ttl.sec`, without it until `clear_latest_caches`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ottla.schemas.caches import BoundedCache
from ottla.schemas.config import RegistryConfig
from ottla.schemas.errors import SchemaRegistryError
from ottla.schemas.exchange import Exchange, Session, quoted
from ottla.schemas.values import RegisteredSchema, Schema, SchemaVersion, ServerConfig

NOT_FOUND = 404
SOFT_DELETED = (40404, 40406)
"""The registry's codes for a subject, and for a version, that was deleted and can be restored."""


class RegistryCalls:
    """One generator for each call."""

    def __init__(self, config: RegistryConfig, monotonic: Callable[[], float], random: Callable[[], float]) -> None:
        self._send = Session(config, monotonic, random).send
        capacity, ttl = config.cache_capacity, config.cache_latest_ttl_s
        self._by_id: BoundedCache[RegisteredSchema] = BoundedCache(capacity, None, monotonic)
        self._registered: BoundedCache[RegisteredSchema] = BoundedCache(capacity, None, monotonic)
        self._versions: BoundedCache[RegisteredSchema] = BoundedCache(capacity, None, monotonic)
        self._latest: BoundedCache[RegisteredSchema] = BoundedCache(capacity, ttl, monotonic)

    def clear_latest_caches(self) -> None:
        self._latest.clear()

    def clear_caches(self) -> None:
        for cache in (self._by_id, self._registered, self._versions, self._latest):
            cache.clear()

    def register(self, subject: str, schema: Schema, normalize: bool) -> Exchange[RegisteredSchema]:
        key = ("register", subject, schema.identity(), normalize)
        known = self._registered.get(key)
        if known is not None:
            return known
        path = f"subjects/{quoted(subject)}/versions"
        answer = yield from self._send("POST", path, {"normalize": normalize}, schema.to_dict())
        found = RegisteredSchema.from_dict(answer)
        kept = schema if found.schema.schema_str is None else found.schema
        full = RegisteredSchema(found.subject or subject, found.version, found.schema_id, found.guid, kept)
        self._registered.put(key, full)
        return full

    def lookup(
        self, subject: str, schema: Schema, normalize: bool, fmt: str | None, deleted: bool
    ) -> Exchange[RegisteredSchema]:
        key = ("lookup", subject, schema.identity(), normalize, fmt, deleted)
        known = self._registered.get(key)
        if known is not None:
            return known
        query = {"normalize": normalize, "format": fmt, "deleted": deleted}
        answer = yield from self._send("POST", f"subjects/{quoted(subject)}", query, schema.to_dict())
        found = RegisteredSchema.from_dict(answer)
        self._registered.put(key, found)
        return found

    def schema_by_id(
        self, schema_id: int, subject: str | None, fmt: str | None, reference_format: str | None
    ) -> Exchange[RegisteredSchema]:
        """Return the schema of an id. A subject only names the context in which the id is looked up."""
        key = (schema_id, subject, fmt, reference_format)
        known = self._by_id.get(key)
        if known is not None:
            return known
        query = {"subject": subject, "format": fmt, "reference_format": reference_format}
        answer = yield from self._send("GET", f"schemas/ids/{quoted(schema_id)}", query)
        found = RegisteredSchema.from_dict({"id": schema_id, **answer})
        self._by_id.put(key, found)
        return found

    def schema_by_guid(self, guid: str, fmt: str | None) -> Exchange[RegisteredSchema]:
        key = ("guid", guid, fmt)
        known = self._by_id.get(key)
        if known is not None:
            return known
        answer = yield from self._send("GET", f"schemas/guids/{quoted(guid)}", {"format": fmt})
        found = RegisteredSchema.from_dict({"guid": guid, **answer})
        self._by_id.put(key, found)
        return found

    def schema_types(self) -> Exchange[list[str]]:
        answer = yield from self._send("GET", "schemas/types")
        return list(answer)

    def subjects_by_id(self, schema_id: int, query: Mapping[str, Any]) -> Exchange[list[str]]:
        answer = yield from self._send("GET", f"schemas/ids/{quoted(schema_id)}/subjects", query)
        return list(answer)

    def versions_by_id(self, schema_id: int, query: Mapping[str, Any]) -> Exchange[list[SchemaVersion]]:
        answer = yield from self._send("GET", f"schemas/ids/{quoted(schema_id)}/versions", query)
        return [SchemaVersion(one.get("subject"), one.get("version")) for one in answer]

    def subjects(self, query: Mapping[str, Any]) -> Exchange[list[str]]:
        answer = yield from self._send("GET", "subjects", query)
        return list(answer)

    def delete_subject(self, subject: str, permanent: bool) -> Exchange[list[int]]:
        versions = yield from self._delete(f"subjects/{quoted(subject)}", permanent)
        self._forget_subjects()
        return list(versions)

    def latest(self, subject: str, fmt: str | None) -> Exchange[RegisteredSchema]:
        key = ("latest", subject, fmt)
        known = self._latest.get(key)
        if known is not None:
            return known
        found = yield from self._version(subject, "latest", {"format": fmt})
        self._latest.put(key, found)
        return found

    def latest_with_metadata(
        self, subject: str, metadata: Mapping[str, str], deleted: bool, fmt: str | None
    ) -> Exchange[RegisteredSchema]:
        key = ("metadata", subject, json.dumps(metadata, sort_keys=True), deleted, fmt)
        known = self._latest.get(key)
        if known is not None:
            return known
        pairs = [part for name, value in metadata.items() for part in (("key", name), ("value", value))]
        query = "&".join(f"{name}={quoted(value)}" for name, value in pairs)
        path = f"subjects/{quoted(subject)}/metadata?{query}&deleted={str(deleted).lower()}"
        answer = yield from self._send("GET", path + (f"&format={quoted(fmt)}" if fmt else ""))
        found = RegisteredSchema.from_dict(answer)
        self._latest.put(key, found)
        return found

    def version(self, subject: str, version: int | str, deleted: bool, fmt: str | None) -> Exchange[RegisteredSchema]:
        if version == "latest":
            return (yield from self._version(subject, version, {"deleted": deleted, "format": fmt}))
        key = (subject, version, deleted, fmt)
        known = self._versions.get(key)
        if known is not None:
            return known
        found = yield from self._version(subject, version, {"deleted": deleted, "format": fmt})
        self._versions.put(key, found)
        return found

    def _version(self, subject: str, version: int | str, query: Mapping[str, Any]) -> Exchange[RegisteredSchema]:
        answer = yield from self._send("GET", f"subjects/{quoted(subject)}/versions/{quoted(version)}", query)
        return RegisteredSchema.from_dict(answer)

    def referenced_by(self, subject: str, version: int | str, query: Mapping[str, Any]) -> Exchange[list[int]]:
        path = f"subjects/{quoted(subject)}/versions/{quoted(version)}/referencedby"
        answer = yield from self._send("GET", path, query)
        return list(answer)

    def versions(self, subject: str, query: Mapping[str, Any]) -> Exchange[list[int]]:
        answer = yield from self._send("GET", f"subjects/{quoted(subject)}/versions", query)
        return list(answer)

    def delete_version(self, subject: str, version: int | str, permanent: bool) -> Exchange[int]:
        deleted = yield from self._delete(f"subjects/{quoted(subject)}/versions/{quoted(version)}", permanent)
        self._forget_subjects()
        return int(deleted)

    def _delete(self, path: str, permanent: bool) -> Exchange[Any]:
        """Delete, and with `permanent` delete again; what was deleted before is then not an error."""
        if not permanent:
            return (yield from self._send("DELETE", path))
        try:
            yield from self._send("DELETE", path)
        except SchemaRegistryError as error:
            if error.error_code not in SOFT_DELETED:
                raise
        return (yield from self._send("DELETE", path, {"permanent": True}))

    def _forget_subjects(self) -> None:
        for cache in (self._registered, self._versions, self._latest):
            cache.clear()

    def check(self, path: str, schema: Schema, normalize: bool, verbose: bool) -> Exchange[tuple[bool, Sequence[str]]]:
        """Return whether a schema is compatible, and with `verbose` why it is not."""
        query = {"normalize": normalize, "verbose": verbose}
        answer = yield from self._send("POST", f"compatibility/subjects/{path}", query, schema.to_dict())
        return bool(answer.get("is_compatible")), answer.get("messages") or ()

    def set_config(self, subject: str | None, config: ServerConfig) -> Exchange[ServerConfig]:
        answer = yield from self._send("PUT", scoped("config", subject), None, config.to_dict())
        return ServerConfig.from_dict(answer)

    def get_config(self, subject: str | None, with_default: bool = False) -> Exchange[ServerConfig]:
        query = {"defaultToGlobal": True} if with_default and subject is not None else None
        answer = yield from self._send("GET", scoped("config", subject), query)
        return ServerConfig.from_dict(answer)

    def delete_config(self, subject: str | None) -> Exchange[ServerConfig]:
        answer = yield from self._send("DELETE", scoped("config", subject))
        return ServerConfig.from_dict(answer or {})

    def get_mode(self, subject: str | None) -> Exchange[str]:
        answer = yield from self._send("GET", scoped("mode", subject))
        return str(answer["mode"])

    def set_mode(self, subject: str | None, mode: str, force: bool) -> Exchange[str]:
        answer = yield from self._send("PUT", scoped("mode", subject), {"force": force}, {"mode": mode})
        return str(answer["mode"])

    def delete_mode(self, subject: str) -> Exchange[str]:
        answer = yield from self._send("DELETE", scoped("mode", subject))
        return str(answer["mode"])

    def contexts(self, query: Mapping[str, Any]) -> Exchange[list[str]]:
        answer = yield from self._send("GET", "contexts", query)
        return list(answer)


def scoped(path: str, subject: str | None) -> str:
    """Return the path of a global setting, or of a subject's."""
    return path if subject is None else f"{path}/{quoted(subject)}"
