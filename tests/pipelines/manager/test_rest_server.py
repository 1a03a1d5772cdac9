"""The HTTP server of a manager, by raw sockets: what a web page, a scanner or a slow client sends, and what is executed of it."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from typing import Any

import pytest

from ottla import http_server
from ottla.http_server import Guard
from ottla.pipelines.manager.rest.answers import RestResponse, json_response
from ottla.pipelines.manager.rest.server import RestServer, bind_server, serve_in_block
from tests.patience import PATIENCE, eventually

SMUGGLED = "PUT /connectors/orders/stop HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n"
"""A request that a web page puts into the body of another, with a Host that it could not send itself."""


class Recorded:
    """A server, and the requests that it has executed."""

    def __init__(self, listen: str = "127.0.0.1:0") -> None:
        self.executed: list[tuple[str, str, bytes]] = []
        self.blocked: threading.Event | None = None
        self.server: RestServer = bind_server(listen, self.answer)
        self.host, self.port = self.server.listener.getsockname()[:2]
        self.address = self.server.address

    def answer(self, method: str, target: str, body: bytes) -> RestResponse:
        self.executed.append((method, target, body))
        if self.blocked is not None:
            self.blocked.wait(PATIENCE)
        if target == "/broken":
            raise ZeroDivisionError("by nothing")
        return RestResponse(204) if method == "PUT" else json_response({"target": target})

    def send(self, *pieces: str | bytes) -> bytes:
        """Send bytes on one connection, and return all that comes back until the server closes it."""
        with self.connection() as connection:
            for piece in pieces:
                connection.sendall(piece.format(host=self.address).encode() if isinstance(piece, str) else piece)
            return read_all(connection)

    @contextmanager
    def connection(self) -> Iterator[socket.socket]:
        with closing(socket.create_connection((self.host, self.port), PATIENCE)) as connection:
            yield connection


def read_all(connection: socket.socket) -> bytes:
    found = bytearray()
    try:
        while piece := connection.recv(65536):
            found += piece
    except ConnectionResetError:
        pass
    return bytes(found)


def statuses(answered: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", answered)]


def message_of(answered: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answered.split(b"\r\n\r\n", 1)[1])
    return found


@pytest.fixture
def recorded() -> Iterator[Recorded]:
    one = Recorded()
    with serve_in_block(one.server):
        yield one


def post(origin: str = "Origin: http://evil.example\r\n", body: str = SMUGGLED, more: str = "") -> str:
    """A request as `fetch(url, {mode: "no-cors", method: "POST", body})` sends it, without Host where `more` has one."""
    host = "" if "Host:" in more else "Host: {host}\r\n"
    return (
        f"POST /connectors HTTP/1.1\r\n{host}{origin}{more}Content-Type: text/plain\r\n"
        f"Content-Length: {len(body)}\r\n\r\n{body}"  # a little less than it has: `send` puts the host in
    )


@pytest.mark.parametrize(
    "headers",
    [
        "Origin: http://evil.example\r\n",
        "Origin: null\r\n",
        "Origin: http://127.0.0.1:1\r\n",
        "Origin: http://127.0.0.1\r\n",
        "Origin: http://localhost.evil.example\r\n",
        "Origin: https://{host}\r\n",
        "Origin: http://{host}\r\nOrigin: http://evil.example\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n",
    ],
)
def test_the_body_of_a_refused_request_is_never_executed(recorded: Recorded, headers: str) -> None:
    answered = recorded.send(post(headers), SMUGGLED)
    assert statuses(answered) == [403]
    assert b"connection: close" in answered.lower()
    assert message_of(answered)["error_code"] == 403
    assert recorded.executed == []


@pytest.mark.parametrize(
    "host",
    [
        "Host: evil.example\r\n",
        "Host: evil.example:8083\r\n",
        "Host: 127.0.0.1\r\n",
        "Host: 127.0.0.1:1\r\n",
        "Host: 127.0.0.1.evil.example\r\n",
        "Host: {host}@evil.example\r\n",
        "Host:\r\n",
    ],
)
def test_a_request_for_another_host_is_refused_and_its_body_not_executed(recorded: Recorded, host: str) -> None:
    answered = recorded.send(post("", more=host), SMUGGLED)
    assert len(statuses(answered)) == 1
    assert statuses(answered)[0] in (400, 403)
    assert recorded.executed == []


def test_a_request_without_a_host_is_refused(recorded: Recorded) -> None:
    assert statuses(recorded.send("PUT /connectors/orders/stop HTTP/1.0\r\n\r\n")) == [403]
    assert statuses(recorded.send("PUT /connectors/orders/stop HTTP/1.1\r\n\r\n")) == [400]
    assert recorded.executed == []


@pytest.mark.parametrize(
    "headers",
    [
        "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 5, 6\r\n",
        "Content-Length: 9999999999999999999999999\r\n",
        "Content-Length: 1048577\r\n",
    ],
)
def test_a_body_without_a_plain_length_is_refused_and_not_executed(recorded: Recorded, headers: str) -> None:
    start = f"POST /connectors/orders/restart HTTP/1.1\r\nHost: {{host}}\r\n{headers}\r\n"
    answered = recorded.send(start, "0\r\n\r\n" + SMUGGLED)
    assert len(statuses(answered)) == 1
    assert statuses(answered)[0] in (400, 411, 413)
    assert recorded.executed == []


def test_a_body_is_not_executed_where_the_request_itself_is_answered(recorded: Recorded) -> None:
    body = SMUGGLED.format(host=recorded.address)
    answered = recorded.send(
        f"POST /connectors/x/restart HTTP/1.1\r\nHost: {{host}}\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n",
        body,
    )
    assert statuses(answered) == [200]
    assert recorded.executed == [("POST", "/connectors/x/restart", body.encode())]


def test_pipelined_requests_are_answered_in_order_and_none_after_one_that_is_refused(recorded: Recorded) -> None:
    get = "GET /{} HTTP/1.1\r\nHost: {{host}}\r\n\r\n"
    answered = recorded.send(get.format(1) + get.format(2) + post() + get.format(3))
    assert statuses(answered) == [200, 200, 403]
    assert [target for _, target, _ in recorded.executed] == ["/1", "/2"]


def test_a_request_with_an_incomplete_body_is_not_executed(recorded: Recorded) -> None:
    with recorded.connection() as connection:
        connection.sendall(f"POST /cut HTTP/1.1\r\nHost: {recorded.address}\r\nContent-Length: 10\r\n\r\nhalf".encode())
    recorded.send("GET /last HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
    assert [target for _, target, _ in recorded.executed] == ["/last"]


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nLong: " + b"a" * 100_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"".join(b"H%d: x\r\n" % number for number in range(20_000)) + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: {host}\r\nBad\x00Name: 1\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET /\r\n\r\n",
        b" GET / HTTP/1.1\r\n\r\n",
    ],
    ids=range(8),
)
def test_a_head_that_is_not_a_head_or_too_long_ends_its_connection(recorded: Recorded, head: bytes) -> None:
    assert set(statuses(recorded.send(head))) <= {400, 403}
    assert recorded.executed == []
    assert statuses(recorded.send("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")) == [200]


@pytest.mark.parametrize(
    "sent", ["", "GET / HTTP/1.1\r\nHost:", "POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 9\r\n\r\nx"]
)
def test_a_client_that_is_too_slow_is_cut_off(recorded: Recorded, sent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "REQUEST_SECONDS", 0.05)
    answered = recorded.send(sent)
    assert statuses(answered) in ([], [408])
    assert recorded.executed == []


def test_a_slow_answer_is_waited_for(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "REQUEST_SECONDS", 0.05)
    recorded.blocked = threading.Event()
    with recorded.connection() as connection:
        connection.sendall(f"GET /slow HTTP/1.1\r\nHost: {recorded.address}\r\nConnection: close\r\n\r\n".encode())
        eventually(lambda: recorded.executed)
        assert recorded.send("") == b""  # a connection that is opened later is cut off before
        recorded.blocked.set()
        assert statuses(read_all(connection)) == [200]


def test_more_connections_than_are_allowed_are_closed(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "MOST_CONNECTIONS", 2)
    with recorded.connection() as first, recorded.connection():
        eventually(lambda: len(recorded.server.server_state.connections) == 2)
        assert recorded.send("") == b""
        first.sendall(f"GET / HTTP/1.1\r\nHost: {recorded.address}\r\nConnection: close\r\n\r\n".encode())
        assert statuses(read_all(first)) == [200]


def test_a_connection_serves_requests_one_after_the_other(recorded: Recorded) -> None:
    with closing(HTTPConnection(recorded.host, recorded.port, timeout=PATIENCE)) as connection:
        for method, target, status in [("GET", "/a?b=c%20d", 200), ("PUT", "/p", 204), ("HEAD", "/a", 200)]:
            connection.request(method, target)
            response = connection.getresponse()
            data = response.read()
            assert response.status == status
            assert (data != b"") == (method == "GET")
            assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert recorded.executed == [("GET", "/a?b=c%20d", b""), ("PUT", "/p", b""), ("GET", "/a", b"")]


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::1]", "LocalHost"])
def test_a_request_names_the_server_by_each_of_its_names(recorded: Recorded, name: str) -> None:
    host = f"{name}:{recorded.port}"
    for origin in ("", f"Origin: http://{host}\r\n"):
        answered = recorded.send(f"GET / HTTP/1.1\r\nHost: {host}\r\n{origin}Connection: close\r\n\r\n")
        assert statuses(answered) == [200]


def test_an_unexpected_error_is_a_response_in_connects_format(recorded: Recorded) -> None:
    answered = recorded.send("GET /broken HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
    assert message_of(answered) == {"error_code": 500, "message": "ZeroDivisionError: by nothing"}


def test_a_server_for_others_takes_any_host_and_no_page() -> None:
    guard = Guard("0.0.0.0", 8083)
    assert guard.check_request({"host": ["connect.example:8083"]}) is None
    for origin in ("http://connect.example:8083", "http://evil.example"):
        refused = guard.check_request({"host": ["connect.example:8083"], "origin": [origin]})
        assert refused is not None
        assert refused.status == 403
    assert Guard("127.0.0.1", 80).check_request({"host": ["localhost"]}) is None


def test_the_end_does_not_wait_for_connections_that_are_kept() -> None:
    one = Recorded("[::1]:0")
    with serve_in_block(one.server):
        kept = HTTPConnection(one.host, one.port, timeout=PATIENCE)
        kept.request("GET", "/")
        assert kept.getresponse().read()
    kept.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((one.host, one.port), PATIENCE)
