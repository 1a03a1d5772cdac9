"""A real web server with responses set by a test."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit


class Asked(NamedTuple):
    method: str
    fields: dict[str, str]
    headers: dict[str, str]
    body: bytes


class Answer(NamedTuple):
    body: Any = None
    status: int = 200
    headers: dict[str, str] = {}  # noqa: RUF012


class Web:
    """Answers by `answer`, and remembers what it was asked."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}/orders"
        self.asked: list[Asked] = []
        self.answers: list[Answer] = []
        """Answers to give first, before `answer` is asked."""

    def answer(self, asked: Asked) -> Answer:
        return Answer([])


@contextmanager
def web(port: int = 0) -> Iterator[Web]:
    """One at a free port, or where one was before."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            asked = Asked(self.command, dict(parse_qsl(urlsplit(self.path).query)), dict(self.headers), body)
            known.asked.append(asked)
            answer = known.answers.pop(0) if known.answers else known.answer(asked)
            data = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
            data = b"" if answer.status == 304 else data
            self.send_response(answer.status)
            for name, value in {"Content-Length": str(len(data)), **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_PATCH = handle_any

        def log_message(self, *_: Any) -> None:
            """Say nothing on the terminal."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    known = Web(server.server_port)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield known
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
