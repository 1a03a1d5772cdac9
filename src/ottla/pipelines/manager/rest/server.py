"""The HTTP server of a manager: a thread for each connection, which it keeps.

On loopback, and for programs: a request that a browser sends for some page of another site is refused, as is one that came here
by a name that is not this machine's.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from ottla.cannot_listen import cannot_listen
from ottla.errors import ConfigError
from ottla.pipelines.manager.rest.answers import Answer, RestError
from ottla.ports import is_port

LOCAL = {"127.0.0.1", "localhost", "::1"}
MOST_BYTES = 1 << 20
"""Of a body."""
IDLE_SECONDS = 60.0
"""After which a connection without requests is closed."""
Answering = Callable[[str, str, bytes], Answer]


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = IDLE_SECONDS
    server: Server

    def respond(self) -> None:
        asks_for_head = self.command == "HEAD"  # as tools do that look whether somebody is there
        method = "GET" if asks_for_head else self.command
        answer = self.refusal() or self.server.answering(method, self.path, self.body())
        self.send_response(answer.status)
        if answer.body:
            self.send_header("Content-Type", answer.kind)
        if answer.status != 204:
            self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers_with(b"" if asks_for_head else answer.body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_PATCH = respond

    def end_headers_with(self, body: bytes) -> None:
        """Head and body in one piece: in two, the second would wait for the first to be acknowledged."""
        buffer: list[bytes] = self._headers_buffer  # type: ignore[attr-defined]  # http.server's own
        self.wfile.write(b"".join(buffer) + b"\r\n" + body)
        buffer.clear()

    def refusal(self) -> Answer | None:
        """Why it is not answered."""
        origin, host = self.headers.get("Origin"), urlsplit(f"//{self.headers.get('Host', '')}").hostname
        if origin is not None and urlsplit(origin).hostname not in LOCAL:
            return RestError(403, f"pages of {origin} have no business here; ask from a program").answer()
        if self.server.is_local and host is not None and host not in LOCAL:
            return RestError(403, f"this is not {host}; ask for 127.0.0.1 or localhost").answer()
        return None

    def body(self) -> bytes:
        """What came with it."""
        length = self.headers.get("Content-Length", "0")
        if not length.isdigit() or int(length) > MOST_BYTES:
            self.close_connection = True
            return b""
        return self.rfile.read(int(length))

    def log_message(self, format: str, *args: Any) -> None:
        """What was asked is nobody's business but the asker's."""


class Server(ThreadingHTTPServer):
    request_queue_size = 128

    def __init__(self, host: str, port: int, answering: Answering) -> None:
        self.answering = answering
        self.is_local = host in LOCAL
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A peer that hangs up in the middle of a request has nothing to be told."""

    @property
    def address(self) -> str:
        host, port = self.server_address[:2]
        shown = host.decode() if isinstance(host, bytes | bytearray) else str(host)
        return f"[{shown}]:{port}" if ":" in shown else f"{shown}:{port}"


def bound(listen: str, answering: Answering) -> Server:
    """A server at `HOST:PORT`; port 0 is a free one."""
    host, _, port = listen.rpartition(":")
    if not host or not is_port(port):
        raise ConfigError(f"listen = {listen!r}: must be HOST:PORT, such as 127.0.0.1:8083")
    try:
        return Server(host.strip("[]"), int(port), answering)
    except OSError as error:
        raise ConfigError(cannot_listen(error, host, int(port), "--listen")) from None


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    """Answers until the end of the `with` statement."""
    thread = threading.Thread(target=server.serve_forever, args=(0.5,), name="pipelines-rest", daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
