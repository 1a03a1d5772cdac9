"""The HTTP server of a manager: uvicorn with h11, in a thread with its own event loop.

It serves programs and has no pages. A browser sends requests to 127.0.0.1 for any open page. So a request must have
exactly this server in Host, and this server's own address in Origin if it has an Origin.

A rejected request closes its connection. Otherwise its body, which a web page may choose freely, would be read as the
next request, with headers chosen by the page.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from socket import AF_INET, AF_INET6, create_server, socket
from typing import Any

from ottla.cannot_listen import cannot_listen
from ottla.errors import ConfigError
from ottla.extras import extra
from ottla.loopback import allowed_hosts, is_loopback
from ottla.pipelines.manager.rest.answers import RestError, RestResponse
from ottla.ports import is_port

with extra("pipelines"):
    import uvicorn
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response
    from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_BODY_BYTES = 1 << 20
MOST_HEAD_BYTES = 1 << 16
"""The limit on the request line and the headers together."""
MOST_CONNECTIONS = 256
"""Further connections are closed at once: a browser's page must not use up the descriptors that pipelines need."""
REQUEST_SECONDS = 30.0
"""The time for a client to send the head of a request, and the same again for its body."""
IDLE_SECONDS = 60
"""The time after which an idle connection is closed."""
END_SECONDS = 1
"""The time for requests to finish when the manager ends."""
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
FOREIGN_SITES = ("cross-site", "same-site")
"""Values of Sec-Fetch-Site, which only browsers send, for requests of pages of other sites."""
Answering = Callable[[str, str, bytes], RestResponse]


class Guard:
    """The rules that reject a request before its body is read. Pure."""

    def __init__(self, host: str, port: int) -> None:
        self._hosts = allowed_hosts(host, port)
        self._origins = frozenset(f"http://{one}" for one in self._hosts)
        self._is_local = is_loopback(host)
        self._address = f"127.0.0.1:{port}" if self._is_local else f"{host}:{port}"

    def check_request(self, headers: Mapping[str, Sequence[str]]) -> RestError | None:
        """Return the reason to reject a request, or None; the names of `headers` are in lower case."""
        hosts = headers.get("host", ())
        if self._is_local and (not hosts or any(one.lower() not in self._hosts for one in hosts)):
            return RestError(403, f"Host {', '.join(hosts)!r} is not this server: use http://{self._address}")
        for origin in headers.get("origin", ()):
            if origin.lower() not in self._origins:
                return RestError(403, f"requests of pages of {origin!r} are rejected: use a program, such as curl")
        for site in headers.get("sec-fetch-site", ()):
            if site.lower() in FOREIGN_SITES:
                return RestError(403, f"requests of pages of other sites ({site}) are rejected: use a program")
        if "transfer-encoding" in headers:
            return RestError(411, "Transfer-Encoding is not supported: send the body with Content-Length")
        length = next(iter(headers.get("content-length", ())), "0")
        if (
            len(length) > len(str(MOST_BODY_BYTES)) or int(length) > MOST_BODY_BYTES
        ):  # h11 has checked that it is a number
            return too_long(length)
        return None


def too_long(length: object) -> RestError:
    return RestError(413, f"the body has {str(length)[:20]} bytes, and {MOST_BODY_BYTES} are allowed")


class TimedProtocol(H11Protocol):  # type: ignore[misc]  # untyped: uvicorn comes with an extra
    """A connection with a deadline for each request, which uvicorn does not have, and with a limit on the number of connections."""

    _head_deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
        else:
            self._start_deadline()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._cancel_deadline()  # the head is complete
        elif self._head_deadline is None:
            self._start_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        super().connection_lost(exc)

    def _start_deadline(self) -> None:
        self._head_deadline = self.loop.call_later(REQUEST_SECONDS, self.transport.abort)

    def _cancel_deadline(self) -> None:
        if self._head_deadline is not None:
            self._head_deadline.cancel()
            self._head_deadline = None


class RestServer(uvicorn.Server):  # type: ignore[misc]  # untyped: uvicorn comes with an extra
    """A server that listens from its creation; `serve_in_block` runs it."""

    def __init__(self, listener: socket, answering: Answering) -> None:
        self.listener = listener
        host, port = listener.getsockname()[:2]
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._guard = Guard(host, port)
        self._answering = answering
        super().__init__(
            uvicorn.Config(
                self._respond,
                http=TimedProtocol,
                ws="none",
                loop="asyncio",
                interface="asgi3",
                lifespan="off",
                log_config=None,
                log_level="critical",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=IDLE_SECONDS,
                timeout_graceful_shutdown=END_SECONDS,
                h11_max_incomplete_event_size=MOST_HEAD_BYTES,
            )
        )

    async def _respond(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one ASGI request. If the client disconnects before the request is complete, do nothing."""
        request = Request(scope, receive)
        headers = {name: request.headers.getlist(name) for name in request.headers}
        refusal = self._guard.check_request(headers)
        if refusal is None:
            try:
                body = await read_body(request)
            except RestError as error:
                refusal = error
            except ClientDisconnect:
                return
        if refusal is not None:
            await response_of(refusal.to_response(), {"Connection": "close"})(scope, receive, send)
            return
        method = "GET" if request.method == "HEAD" else request.method  # uvicorn drops the body of a response to HEAD
        target = (scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")).decode(
            "latin-1"
        )
        try:
            answer = await run_in_threadpool(self._answering, method, target, body)
        except Exception as error:  # any error becomes a response in Connect's format
            answer = RestError(500, f"{type(error).__name__}: {error}").to_response()
        await response_of(answer)(scope, receive, send)


async def read_body(request: Request) -> bytes:
    """Return the body of a request; RestError if it is too long or too slow, ClientDisconnect if it is incomplete."""
    body = bytearray()
    try:
        async with asyncio.timeout(REQUEST_SECONDS):
            async for piece in request.stream():
                body += piece
                if len(body) > MOST_BODY_BYTES:
                    raise too_long(f"more than {MOST_BODY_BYTES}")
    except TimeoutError:
        raise RestError(408, f"the body did not arrive within {REQUEST_SECONDS:.0f} s") from None
    return bytes(body)


def response_of(answer: RestResponse, more: Mapping[str, str] | None = None) -> Response:
    headers = {**HEADERS, **(more or {})}
    if answer.body:
        headers["Content-Type"] = answer.kind
    return Response(answer.body, answer.status, headers)


def bind_server(listen: str, answering: Answering) -> RestServer:
    """Return a server that listens at `HOST:PORT`; port 0 chooses a free one."""
    host, _, port = listen.rpartition(":")
    if not host or not is_port(port):
        raise ConfigError(f"listen = {listen!r}: must be HOST:PORT, for example 127.0.0.1:8083")
    host = host.strip("[]")
    try:
        listener = create_server((host, int(port)), family=AF_INET6 if ":" in host else AF_INET)
    except OSError as error:
        raise ConfigError(cannot_listen(error, host, int(port), "--listen")) from None
    return RestServer(listener, answering)


@contextmanager
def serve_in_block(server: RestServer) -> Iterator[RestServer]:
    """Answer requests until the end of the block."""
    thread = threading.Thread(target=server.run, args=([server.listener],), name="pipelines-rest", daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.should_exit = True
        thread.join()
