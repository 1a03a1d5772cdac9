"""The HTTP server of a registry: uvicorn over `Routes`, in the thread that calls `run`."""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Callable, Mapping
from socket import gethostname, socket
from typing import Any

from ottla.cannot_listen import open_http_listener
from ottla.client.admin.config import read_admin_settings
from ottla.errors import ConfigError, OttlaError
from ottla.extras import extra
from ottla.http_server import Guard, HttpRefusal, make_config, read_body
from ottla.registry import metrics
from ottla.registry.access import CONFIG, READ, WRITE, read_access, resource_of
from ottla.registry.election import Election, Identity, Leadership
from ottla.registry.errors import RegistryError, forwarding_failed, unknown_leader
from ottla.registry.metrics import RequestMetrics
from ottla.registry.parsed_schemas import ParsedSchemas
from ottla.registry.records import encode
from ottla.registry.registry import Leader, Registry
from ottla.registry.routes import DECIDING, READING, RawText, RestRequest, Routes, parse_request
from ottla.registry.schema_topic import SchemaTopic
from ottla.registry.settings import RegistrySettings
from ottla.registry.state import RegistryState

with extra("registry"):
    import uvicorn

log = logging.getLogger(__name__)

CONTENT_TYPE = b"application/vnd.schemaregistry.v1+json"
FORWARDED = "x-forward"
"""The header of a request that another server has forwarded."""
MOST_BODY_BYTES = 8 << 20
"""The limit on a body. A schema of 1 MiB may be escaped in it."""


class RegistryServer:
    """A registry with a listening socket; `run` serves it until `stop`."""

    def __init__(self, settings: RegistrySettings, listener: socket | None = None) -> None:
        """Use `listener`, which already listens, or create one. Raise ConfigError for wrong access rules or files."""
        self._settings = settings
        self._access = None if settings.auth_file is None else read_access(settings.auth_file)
        self._scheme = "http" if settings.certificate_file is None else "https"
        self._tls = read_tls(settings)
        self._admin = read_admin_settings(settings.client, {})
        self.listener = open_http_listener(settings.host, settings.port) if listener is None else listener
        host, port = self.listener.getsockname()[:2]
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        advertised = settings.advertised_host or (gethostname() if host in ("0.0.0.0", "::") else host)
        self._identity = Identity(advertised, port, self._scheme, master_eligibility=settings.may_lead)
        self._guard = Guard(host, port, MOST_BODY_BYTES, self._scheme)
        self._metrics = RequestMetrics()
        self._server: Any = None
        self._is_stopping = False
        self._task: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def url(self) -> str:
        """The URL for clients."""
        return f"{self._scheme}://{self.address}"

    def run(self, ready: Callable[[RegistryServer], None]) -> None:
        """Read the topic, call `ready`, and serve until a signal or `stop`."""
        try:
            asyncio.run(self._serve(ready))
        except asyncio.CancelledError:
            pass  # stopped before it was ready
        finally:
            self.listener.close()

    def stop(self) -> None:
        """Make `run` return; may be called by any thread."""
        self._is_stopping = True
        if self._server is not None:
            self._server.should_exit = True
        elif self._loop is not None and self._task is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._task.cancel)

    async def _serve(self, ready: Callable[[RegistryServer], None]) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        settings, self._state = self._settings, RegistryState()
        timeout = settings.write_timeout_seconds
        self._topic = topic = SchemaTopic(settings.client, settings.topic, self._state.replay, timeout)
        self._leader = Leader(timeout)
        election = Election(
            self._admin, settings.group, self._identity, settings.session_timeout_ms, self._leader.set_present
        )
        try:
            self._leader.follow(election)
            await topic.open()
            registry = Registry(self._state, topic, ParsedSchemas(), self._leader)
            self._routes = Routes(registry, settings.group)
            tls = {"ssl_certfile": settings.certificate_file, "ssl_keyfile": settings.key_file} if self._tls else {}
            self._server = uvicorn.Server(make_config(self._respond, **tls))
            self._server.should_exit = self._is_stopping
            ready(self)
            await self._server.serve(sockets=[self.listener])
        finally:
            await asyncio.to_thread(election.close)
            await topic.close()

    async def _respond(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one ASGI request."""
        began = time.perf_counter()
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
        method: str = scope["method"]
        body: bytes | HttpRefusal | None = self._guard.check_request(headers)
        if body is None:
            body = b"" if method in READING else await read_body(receive, MOST_BODY_BYTES)
        if body is None:
            return  # the client has disconnected
        if isinstance(body, HttpRefusal):
            await respond(send, body.status, error_body(body.status, body.sentence), CONTENT_TYPE, is_last=True)
            return
        status, content, kind = await self._answer(method, scope, body, headers)
        self._metrics.note_request(method, scope["path"], status, time.perf_counter() - began)
        await respond(send, status, content, kind)

    async def _answer(
        self, method: str, scope: Any, body: bytes, headers: Mapping[str, list[str]]
    ) -> tuple[int, bytes, bytes]:
        """Return status, body and content type of a response."""
        try:
            if scope["path"] == "/metrics":
                await self._authenticate(headers)
                return 200, self._metrics_page(), metrics.CONTENT_TYPE
            path = (scope["raw_path"] or scope["path"].encode()).decode("latin-1")
            query = scope["query_string"].decode("latin-1")
            request = parse_request(method, path, query, body)
            handler = self._routes.find(request)
            is_change = handler in DECIDING
            request = await self._authorize(request, headers, is_change=is_change)
            if is_change:
                value = self._routes.find_unchanged(request) if handler is Routes.register_schema else None
                if value is None:
                    leadership = await self._leader.find()
                    if not leadership.is_own:
                        target = path + (f"?{query}" if query else "")
                        return await self._forward(leadership, method, target, body, headers)
                    value = await handler(self._routes, request)
            else:
                value = await handler(self._routes, request)
        except RegistryError as error:
            return error.status, error_body(error.code, error.message), CONTENT_TYPE
        except OttlaError as error:  # such as brokers that do not answer
            log.warning("a request failed path=%s: %s", scope["path"], error)
            return 500, error_body(50001, str(error)), CONTENT_TYPE
        except Exception as error:
            log.exception("a request failed path=%s", scope["path"])
            return 500, error_body(50001, f"internal error: {type(error).__name__}: {error}"), CONTENT_TYPE
        if value is None:
            return 204, b"", CONTENT_TYPE
        if isinstance(value, RawText):
            return 200, value.text.encode(), CONTENT_TYPE
        return 200, encode(value), CONTENT_TYPE

    async def _authenticate(self, headers: Mapping[str, list[str]]) -> str:
        """Return the user of a request, empty without access rules; raise RegistryError 401."""
        if self._access is None:
            return ""
        given = headers.get("authorization", [""])[0]
        known = self._access.find_verified(given)
        return known if known is not None else await asyncio.to_thread(self._access.authenticate, given)

    async def _authorize(
        self, request: RestRequest, headers: Mapping[str, list[str]], *, is_change: bool
    ) -> RestRequest:
        """Return the request with the permissions of its user; raise RegistryError 401 or 403."""
        access = self._access
        if access is None:
            return request
        user = await self._authenticate(headers)
        resource = resource_of(request.parts, self._routes.subject_of(request))
        if resource is not None and (is_change or resource != CONFIG):
            access.check(user, WRITE if is_change else READ, resource)
        return request._replace(may_read=lambda subject: access.allows(user, READ, f"Subject:{subject}"))

    async def _forward(
        self, leadership: Leadership, method: str, target: str, body: bytes, headers: Mapping[str, list[str]]
    ) -> tuple[int, bytes, bytes]:
        """Send a change to the leader, and return its response once this server has read the effect."""
        if FORWARDED in headers:
            raise unknown_leader()  # two servers see different leaders: the client retries
        assert leadership.leader is not None
        kept = {name: headers[name][0] for name in ("authorization", "content-type") if name in headers}
        answer = await asyncio.to_thread(
            forward, leadership.leader, method, target, body, kept, self._settings.write_timeout_seconds
        )
        await self._topic.catch_up()
        return answer

    def _metrics_page(self) -> bytes:
        present = self._leader.present
        gauges = {f"ottla_registry_{name}": count for name, count in self._state.counts().items()}
        gauges["ottla_registry_is_leader"] = int(present is not None and present.is_own)
        gauges["ottla_registry_offset"] = self._topic.position
        gauges["ottla_registry_skipped_records_total"] = self._topic.skipped_count
        return self._metrics.write_page(gauges)


def read_tls(settings: RegistrySettings) -> ssl.SSLContext | None:
    """Return the TLS context of the certificate and key; raise ConfigError if they are unusable."""
    if settings.certificate_file is None:
        if settings.key_file is not None:
            raise ConfigError("--key needs --certificate")
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(settings.certificate_file, settings.key_file)
    except OSError as error:  # of which SSLError is a kind
        raise ConfigError(f"--certificate {settings.certificate_file}: {error.strerror or error}") from None
    return context


def forward(
    leader: Identity, method: str, target: str, body: bytes, headers: Mapping[str, str], timeout: float
) -> tuple[int, bytes, bytes]:
    """Send a request to the leader; raise RegistryError if it does not answer."""
    import http.client  # with the modules for mail that it needs: only for servers that forward

    kind = http.client.HTTPSConnection if leader.scheme == "https" else http.client.HTTPConnection
    connection = kind(leader.host, leader.port, timeout=timeout)
    try:
        connection.request(method, target, body, {**headers, FORWARDED: "true"})
        response = connection.getresponse()
        return response.status, response.read(), (response.getheader("content-type") or "").encode()
    except (OSError, http.client.HTTPException) as error:
        raise forwarding_failed(f"the leader at {leader.url} did not answer: {error}: retry the request") from None
    finally:
        connection.close()


def error_body(code: int, message: str) -> bytes:
    """Return the body of an error in Confluent's format."""
    return encode({"error_code": code, "message": message})


async def respond(send: Any, status: int, body: bytes, kind: bytes, *, is_last: bool = False) -> None:
    """Send a response; `is_last` closes the connection."""
    headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
    if is_last:
        headers.append((b"connection", b"close"))
    if status == 401:
        headers.append((b"www-authenticate", b'Basic realm="schema registry"'))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
