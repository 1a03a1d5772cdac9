"""The paths of the REST interface. Each handler takes a request and returns the value of the response.

Paths, parameters, status codes and bodies are those of Confluent's interface. `/contexts/NAME/…` is the same path within
a context.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote

import msgspec

from ottla._version import __version__
from ottla.registry import decisions, errors
from ottla.registry.compatibility import DEFAULT_LEVEL
from ottla.registry.decisions import SchemaRequest, content_to_json, read_version, version_to_json
from ottla.registry.records import HIGHEST_NUMBER, Content
from ottla.registry.registry import Registry
from ottla.registry.state import Version
from ottla.registry.subjects import (
    ANY_CONTEXT,
    DEFAULT_CONTEXT,
    context_of,
    is_context_only,
    normalize_subject,
    qualify,
    split_subject,
)

READING = ("GET", "HEAD")
read_schema_request = msgspec.json.Decoder(SchemaRequest).decode


class RestRequest(NamedTuple):
    """A parsed request."""

    method: str
    parts: tuple[str, ...]
    """The decoded segments of the path."""
    query: Mapping[str, str]
    body: bytes
    context: str = DEFAULT_CONTEXT
    """The context of a path below /contexts."""
    may_read: Callable[[str], bool] | None = None
    """True for the subjects that the user may read; None if there are no permissions."""

    def readable(self, subjects: list[str]) -> list[str]:
        """Return the subjects that the user may read."""
        return subjects if self.may_read is None else [each for each in subjects if self.may_read(each)]

    def flag(self, name: str) -> bool:
        """Return True if a parameter is `true`."""
        return self.query.get(name, "").lower() == "true"

    def subject(self, position: int = 1) -> str:
        """Return the subject in the path."""
        return self.qualified(self.parts[position])

    def qualified(self, subject: str) -> str:
        """Return a subject in the context of the path."""
        if self.context == DEFAULT_CONTEXT or subject.startswith(":."):
            return normalize_subject(subject)
        return qualify(self.context, subject)

    def number(self, name: str, default: int) -> int:
        """Return a number among the parameters."""
        text = self.query.get(name)
        if text is None:
            return default
        try:
            return int(text)
        except ValueError:
            raise errors.RegistryError(404, 404, f"invalid value {text!r} for {name}: expected a number") from None

    def schema(self) -> SchemaRequest:
        """Return the body as a schema."""
        try:
            return read_schema_request(self.body)
        except msgspec.ValidationError as error:
            raise errors.RegistryError(422, 422, f"invalid request: {error}") from None
        except msgspec.DecodeError as error:
            raise errors.RegistryError(400, 400, f"the body is not JSON: {error}") from None

    def members(self) -> dict[str, Any]:
        """Return the body as an object."""
        try:
            return msgspec.json.decode(self.body, type=dict[str, Any])
        except msgspec.ValidationError as error:
            raise errors.RegistryError(422, 422, f"invalid request: {error}") from None
        except msgspec.DecodeError as error:
            raise errors.RegistryError(400, 400, f"the body is not JSON: {error}") from None


class RawText(NamedTuple):
    """A response that is not JSON, or JSON already."""

    text: str


Handler = Callable[["Routes", RestRequest], Awaitable[Any]]


def parse_request(method: str, raw_path: str, query: str, body: bytes) -> RestRequest:
    """Return a request. A context in the path applies to its subjects, and to the prefix of listings."""
    parts = [unquote(each) for each in raw_path.strip("/").split("/")] if raw_path.strip("/") else []
    parameters = {name: values[-1] for name, values in parse_qs(query, keep_blank_values=True).items()} if query else {}
    context = DEFAULT_CONTEXT
    if len(parts) > 2 and parts[0] == "contexts":
        given = parts[1].strip(":")
        context = given if given.startswith(".") else f".{given}"
        parts = parts[2:]
        parameters = dict(parameters)
        if parts[0] in ("subjects", "schemas"):
            parameters.setdefault("subjectPrefix", qualify(context, "") or ":.:")
        parameters["subject"] = qualify(context, parameters.get("subject", ""))
    return RestRequest("GET" if method == "HEAD" else method, tuple(parts), parameters, body, context)


class Routes:
    """Answers requests with a registry."""

    def __init__(self, registry: Registry, group: str) -> None:
        self._registry = registry
        self._state = registry.state
        self._group = group

    def find(self, request: RestRequest) -> Handler:
        """Return the handler of a request; raise RegistryError 404 or 405."""
        patterns = ROUTES_BY_LENGTH.get(len(request.parts), ())
        matched = [route for route in patterns if matches(route.path, request.parts)]
        for route in matched:
            if route.method == request.method:
                return route.handler
        if matched:
            raise errors.RegistryError(405, 405, f"HTTP 405 Method Not Allowed: {request.method} is not supported here")
        raise errors.RegistryError(404, 404, "HTTP 404 Not Found")

    def subject_of(self, request: RestRequest) -> str | None:
        """Return the subject that a request is about, with its alias resolved; None if it is about none."""
        position = {"subjects": 1, "config": 1, "mode": 1, "compatibility": 2}.get((request.parts or ("",))[0])
        if position is None or len(request.parts) <= position:
            return None
        return (
            request.subject(position)
            if position == 1 and request.parts[0] != "subjects"
            else self._aliased(request, position)
        )

    def find_unchanged(self, request: RestRequest) -> Any:
        """Return the response to a registration that changes nothing, None for any other request."""
        if len(request.parts) != 3 or request.flag("normalize"):
            return None
        try:
            return self._registry.find_registered(self._aliased(request), request.schema())
        except errors.RegistryError:
            return None  # the leader decides, which may know more

    async def root(self, request: RestRequest) -> Any:
        return {}

    # Schemas

    async def get_schema(self, request: RestRequest) -> Any:
        content, context = self._content_of(request)
        body = {"guid": content.guid(), **content_to_json(content)}
        if "format" in request.query:
            body["schema"] = self._formatted(request, content, qualify(context, ""))
        if request.flag("fetchMaxId"):
            body["maxId"] = self._state.highest_id(context)
        return body

    async def get_schema_text(self, request: RestRequest) -> Any:
        content, context = self._content_of(request)
        return RawText(self._formatted(request, content, qualify(context, "")))

    async def get_schema_subjects(self, request: RestRequest) -> Any:
        return page(request, list(dict.fromkeys(each.subject for each in self._uses_of(request))))

    async def get_schema_versions(self, request: RestRequest) -> Any:
        return page(request, [{"subject": each.subject, "version": each.version} for each in self._uses_of(request)])

    async def get_schema_by_guid(self, request: RestRequest) -> Any:
        context, schema_id = self._ids_of_guid(request)[0]
        self._check_readable(request, context, schema_id)
        content = self._state.content(context, schema_id)
        assert content is not None
        body = {"guid": content.guid(), **content_to_json(content)}
        if "format" in request.query:
            body["schema"] = self._formatted(request, content, qualify(context, ""))
        return body

    async def get_ids_of_guid(self, request: RestRequest) -> Any:
        return [{"context": context, "id": schema_id} for context, schema_id in self._ids_of_guid(request)]

    async def list_types(self, request: RestRequest) -> Any:
        return list(decisions.KINDS)

    async def list_schemas(self, request: RestRequest) -> Any:
        with_deleted, latest = request.flag("deleted"), request.flag("latestOnly")
        kind = request.query.get("ruleType")
        found: list[Version] = []
        prefix = request.query.get("subjectPrefix", ANY_CONTEXT)
        for subject in request.readable(self._state.subjects(prefix, with_deleted=with_deleted)):
            versions = self._state.versions(subject, with_deleted=with_deleted)
            found += versions[-1:] if latest else versions
        if kind:
            found = [each for each in found if has_rule(each.content, kind)]
        return [version_to_json(each, with_deleted=with_deleted) for each in page(request, found)]

    def _content_of(self, request: RestRequest) -> tuple[Content, str]:
        """Return the content of the id in the path, and its context.

        The context is that of the parameter `subject`. If that has no context, all contexts are searched for its use.
        """
        schema_id = read_id(request.parts[2])
        subject = request.query.get("subject")
        context = request.context if subject is None else context_of(subject)
        content = self._state.content(context, schema_id)
        if content is None and subject and context == DEFAULT_CONTEXT:
            name = split_subject(subject)[1]
            for other in self._state.contexts():
                if any(each.subject == qualify(other, name) for each in self._state.uses_of(other, schema_id)):
                    content, context = self._state.content(other, schema_id), other
        if content is None:
            raise errors.schema_not_found(schema_id)
        self._check_readable(request, context, schema_id)
        return content, context

    def _check_readable(self, request: RestRequest, context: str, schema_id: int) -> None:
        """Raise RegistryError if the user may read no subject with the id."""
        if request.may_read is not None:
            subjects = {each.subject for each in self._state.uses_of(context, schema_id)}
            if not any(map(request.may_read, subjects)):
                raise errors.RegistryError(403, 40301, f"no permission to read a subject of schema {schema_id}")

    def _uses_of(self, request: RestRequest) -> list[Version]:
        _, context = self._content_of(request)
        subject = request.query.get("subject")
        uses = self._state.uses_of(context, read_id(request.parts[2]))
        named = bool(subject) and not is_context_only(subject or "")
        return [
            each
            for each in uses
            if (request.flag("deleted") or not each.is_deleted)
            and (not named or each.subject == normalize_subject(subject or ""))
            and (request.may_read is None or request.may_read(each.subject))
        ]

    def _ids_of_guid(self, request: RestRequest) -> list[tuple[str, int]]:
        try:
            digest = bytes.fromhex(request.parts[2].replace("-", ""))
        except ValueError:
            raise errors.schema_not_found(request.parts[2]) from None
        found = list(self._state.ids_by_digest(digest))
        if not found:
            raise errors.schema_not_found(request.parts[2])
        return found

    def _formatted(self, request: RestRequest, content: Content, subject: str) -> str:
        """Return the text of a content in the format of the parameter `format`."""
        wanted = request.query.get("format", "")
        if not wanted:
            return content.text
        try:
            references = decisions.resolve_references(self._state, subject, content)
            parsed = self._registry.schemas.parse(content, references)
        except errors.InvalidSchemaError as error:  # a record of another program
            raise errors.invalid_schema(f"the schema cannot be formatted: {error}") from None
        formatted = getattr(parsed, "formatted", None)
        return content.text if formatted is None else str(formatted(wanted))

    # Subjects

    async def list_subjects(self, request: RestRequest) -> Any:
        prefix = request.query.get("subjectPrefix", ANY_CONTEXT)
        found = self._state.subjects(
            prefix, with_deleted=request.flag("deleted"), only_deleted=request.flag("deletedOnly")
        )
        return page(request, request.readable(found))

    async def look_up_schema(self, request: RestRequest) -> Any:
        found = await self._registry.look_up(
            self._aliased(request),
            request.schema(),
            with_deleted=request.flag("deleted"),
            is_normalized=request.flag("normalize"),
        )
        return version_to_json(found, self._formatted(request, found.content, found.subject))

    async def delete_subject(self, request: RestRequest) -> Any:
        subject, permanent = self._aliased(request), request.flag("permanent")
        return await self._registry.change(
            lambda state: decisions.decide_subject_deletion(state, subject, permanent=permanent)
        )

    async def list_versions(self, request: RestRequest) -> Any:
        subject = self._aliased(request)
        only = request.flag("deletedOnly")
        found = self._state.versions(subject, with_deleted=only or request.flag("deleted"))
        if only:
            found = [each for each in found if each.is_deleted]
        if not found:
            raise errors.subject_not_found(subject)
        return page(request, [each.version for each in found])

    async def register_schema(self, request: RestRequest) -> Any:
        return await self._registry.register(
            self._aliased(request), request.schema(), is_normalized=request.flag("normalize")
        )

    async def get_version(self, request: RestRequest) -> Any:
        found = self._numbered(request)
        return version_to_json(
            found, self._formatted(request, found.content, found.subject), with_deleted=request.flag("deleted")
        )

    async def get_version_text(self, request: RestRequest) -> Any:
        found = self._numbered(request)
        return RawText(self._formatted(request, found.content, found.subject))

    async def get_referrers(self, request: RestRequest) -> Any:
        found = self._numbered(request)
        ids = sorted({each.id for each in self._state.referrers(found.subject, found.version)})
        return page(request, ids)

    async def delete_version(self, request: RestRequest) -> Any:
        subject, number, permanent = self._aliased(request), read_version(request.parts[3]), request.flag("permanent")
        return await self._registry.change(
            lambda state: decisions.decide_version_deletion(state, subject, number, permanent=permanent)
        )

    async def get_version_by_metadata(self, request: RestRequest) -> Any:
        subject = self._aliased(request)
        versions = self._state.versions(subject, with_deleted=request.flag("deleted"))
        if not versions:
            raise errors.subject_not_found(subject)
        wanted = dict(
            zip(request.query.get("key", "").split(","), request.query.get("value", "").split(","), strict=False)
        )
        for each in reversed(versions):
            if all(decisions.property_of(each.content, name) == value for name, value in wanted.items()):
                return version_to_json(each, self._formatted(request, each.content, subject))
        raise errors.schema_not_found()

    def _numbered(self, request: RestRequest) -> Version:
        number = read_version(request.parts[3])
        return decisions.find_numbered(
            self._state, self._aliased(request), number, with_deleted=request.flag("deleted")
        )

    def _aliased(self, request: RestRequest, position: int = 1) -> str:
        """Return the subject in the path, or the one that its config names as alias."""
        subject = request.subject(position)
        alias = (self._state.own_config(subject) or {}).get("alias")
        return request.qualified(alias) if alias else subject

    # Compatibility

    async def check_with_version(self, request: RestRequest) -> Any:
        return await self._check(request, self._aliased(request, 2), read_version(request.parts[4]))

    async def check_with_all(self, request: RestRequest) -> Any:
        return await self._check(request, self._aliased(request, 2), None)

    async def _check(self, request: RestRequest, subject: str, number: int | None) -> Any:
        messages = await self._registry.check_compatibility(
            subject, request.schema(), number, is_normalized=request.flag("normalize")
        )
        body: dict[str, Any] = {"is_compatible": not messages}
        if request.flag("verbose"):
            body["messages"] = list(messages)
        return body

    # Config and mode

    async def get_config(self, request: RestRequest) -> Any:
        own = self._state.own_config(scope_of_path(request)) or {}
        return {"compatibilityLevel": DEFAULT_LEVEL, **own}

    async def get_subject_config(self, request: RestRequest) -> Any:
        subject = request.subject()
        own = self._state.own_config(subject)
        if request.flag("defaultToGlobal"):
            return {"compatibilityLevel": DEFAULT_LEVEL, **self._state.config(subject)}
        if own is None:
            raise errors.compatibility_not_configured(subject)
        return own

    async def put_config(self, request: RestRequest) -> Any:
        scope, body = scope_of_path(request), request.members()
        return await self._registry.change(lambda state: decisions.decide_config(state, scope, body))

    async def delete_config(self, request: RestRequest) -> Any:
        scope = scope_of_path(request)
        return await self._registry.change(lambda state: decisions.decide_config_deletion(state, scope))

    async def get_mode(self, request: RestRequest) -> Any:
        return {"mode": self._state.own_mode(scope_of_path(request)) or decisions.READWRITE}

    async def get_subject_mode(self, request: RestRequest) -> Any:
        subject = request.subject()
        own = self._state.own_mode(subject)
        if own is None and request.flag("defaultToGlobal"):
            own = self._state.mode(subject) or decisions.READWRITE
        if own is None:
            raise errors.mode_not_configured(subject)
        return {"mode": own}

    async def put_mode(self, request: RestRequest) -> Any:
        scope, mode, force = scope_of_path(request), request.members().get("mode"), request.flag("force")
        return await self._registry.change(lambda state: decisions.decide_mode(state, scope, mode, force=force))

    async def delete_mode(self, request: RestRequest) -> Any:
        subject = request.subject()
        return await self._registry.change(lambda state: decisions.decide_mode_deletion(state, subject))

    # Contexts and the server

    async def list_contexts(self, request: RestRequest) -> Any:
        return page(request, self._state.contexts())

    async def delete_context(self, request: RestRequest) -> Any:
        context = request.parts[1].strip(":")
        return await self._registry.change(lambda state: decisions.decide_context_deletion(state, context))

    async def get_server_id(self, request: RestRequest) -> Any:
        clusters = {"kafka-cluster": self._registry.topic.cluster_id, "schema-registry-cluster": self._group}
        return {"id": "", "scope": {"path": [], "clusters": clusters}}

    async def get_server_version(self, request: RestRequest) -> Any:
        return {"version": __version__, "commitId": ""}


class Route(NamedTuple):
    """A method and a path; `*` matches any segment."""

    method: str
    path: tuple[str, ...]
    handler: Handler


def route(method: str, path: str, handler: Handler) -> Route:
    return Route(method, tuple(path.strip("/").split("/")) if path != "/" else (), handler)


ROUTES = (
    route("GET", "/", Routes.root),
    route("POST", "/", Routes.root),
    route("GET", "/schemas", Routes.list_schemas),
    route("GET", "/schemas/types", Routes.list_types),
    route("GET", "/schemas/ids/*", Routes.get_schema),
    route("GET", "/schemas/ids/*/schema", Routes.get_schema_text),
    route("GET", "/schemas/ids/*/subjects", Routes.get_schema_subjects),
    route("GET", "/schemas/ids/*/versions", Routes.get_schema_versions),
    route("GET", "/schemas/guids/*", Routes.get_schema_by_guid),
    route("GET", "/schemas/guids/*/ids", Routes.get_ids_of_guid),
    route("GET", "/subjects", Routes.list_subjects),
    route("POST", "/subjects/*", Routes.look_up_schema),
    route("DELETE", "/subjects/*", Routes.delete_subject),
    route("GET", "/subjects/*/versions", Routes.list_versions),
    route("POST", "/subjects/*/versions", Routes.register_schema),
    route("GET", "/subjects/*/metadata", Routes.get_version_by_metadata),
    route("GET", "/subjects/*/versions/*", Routes.get_version),
    route("DELETE", "/subjects/*/versions/*", Routes.delete_version),
    route("GET", "/subjects/*/versions/*/schema", Routes.get_version_text),
    route("GET", "/subjects/*/versions/*/referencedby", Routes.get_referrers),
    route("POST", "/compatibility/subjects/*/versions", Routes.check_with_all),
    route("POST", "/compatibility/subjects/*/versions/*", Routes.check_with_version),
    route("GET", "/config", Routes.get_config),
    route("PUT", "/config", Routes.put_config),
    route("DELETE", "/config", Routes.delete_config),
    route("GET", "/config/*", Routes.get_subject_config),
    route("PUT", "/config/*", Routes.put_config),
    route("DELETE", "/config/*", Routes.delete_config),
    route("GET", "/mode", Routes.get_mode),
    route("PUT", "/mode", Routes.put_mode),
    route("GET", "/mode/*", Routes.get_subject_mode),
    route("PUT", "/mode/*", Routes.put_mode),
    route("DELETE", "/mode/*", Routes.delete_mode),
    route("GET", "/contexts", Routes.list_contexts),
    route("DELETE", "/contexts/*", Routes.delete_context),
    route("GET", "/v1/metadata/id", Routes.get_server_id),
    route("GET", "/v1/metadata/version", Routes.get_server_version),
)
ROUTES_BY_LENGTH: dict[int, list[Route]] = {}
for each in ROUTES:
    ROUTES_BY_LENGTH.setdefault(len(each.path), []).append(each)
DECIDING = frozenset(
    (Routes.register_schema, Routes.delete_subject, Routes.delete_version, Routes.put_config, Routes.delete_config,
     Routes.put_mode, Routes.delete_mode, Routes.delete_context)
)  # fmt: skip
"""The handlers that write; the leader runs them."""


def matches(path: Sequence[str], parts: Sequence[str]) -> bool:
    """Return True if the segments match a path of the same length."""
    return all(wanted in ("*", part) for wanted, part in zip(path, parts, strict=True))


def read_id(text: str) -> int:
    """Return an id of the path."""
    if text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) <= HIGHEST_NUMBER:
        return int(text)
    raise errors.RegistryError(404, 404, f"HTTP 404 Not Found: {text[:40]!r} is not a schema id")


def scope_of_path(request: RestRequest) -> str | None:
    """Return the scope of a config or mode: a subject, a context, or None for the registry."""
    if len(request.parts) == 1:
        return qualify(request.context, "") or None
    return request.subject() or None


def page(request: RestRequest, found: list[Any]) -> list[Any]:
    """Return the part of a list that `offset` and `limit` select; a negative limit means all."""
    offset, limit = max(0, request.number("offset", 0)), request.number("limit", -1)
    return found[offset:] if limit < 0 else found[offset : offset + limit]


def has_rule(content: Content, kind: str) -> bool:
    """Return True if a content has a rule of a type."""
    groups = (content.rule_set or {}).values()
    return any(rule.get("type") == kind for group in groups if group for rule in group)
