"""The HTTP server of a manager: uvicorn with h11, in a thread with its own event loop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from socket import socket
from typing import Any

from ottla.cannot_listen import open_http_listener
from ottla.errors import ConfigError
from ottla.extras import extra
from ottla.http_server import Guard, HttpRefusal, make_config, read_body
from ottla.pipelines.manager.rest.answers import RestError, RestResponse
from ottla.ports import is_port

with extra("pipelines"):
    import uvicorn
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import Response

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
Answering = Callable[[str, str, bytes], RestResponse]


class RestServer(uvicorn.Server):  # type: ignore[misc]  # untyped: uvicorn comes with an extra
    """A server that listens from its creation; `serve_in_block` runs it."""

    def __init__(self, listener: socket, answering: Answering) -> None:
        self.listener = listener
        host, port = listener.getsockname()[:2]
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._guard = Guard(host, port)
        self._answering = answering
        super().__init__(make_config(self._respond))

    async def _respond(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one ASGI request. If the client disconnects before the request is complete, do nothing."""
        request = Request(scope, receive)
        headers = {name: request.headers.getlist(name) for name in request.headers}
        refusal = self._guard.check_request(headers)
        body = refusal or await read_body(receive)
        if body is None:
            return
        if isinstance(body, HttpRefusal):
            error = RestError(body.status, body.sentence)
            await response_of(error.to_response(), {"Connection": "close"})(scope, receive, send)
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
        listener = open_http_listener(host, int(port))
    except OSError as error:
        raise ConfigError(error.strerror or str(error)) from None
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
