"""Parts of the HTTP servers for programs: the rules of access, limits on time and size, and uvicorn's configuration.

Such a server has no pages. A browser sends requests to 127.0.0.1 for any open page. So a request must have exactly this
server in Host, and this server's own address in Origin if it has an Origin.

A rejected request closes its connection. Otherwise its body, which a web page may choose freely, would be read as the
next request, with headers chosen by the page.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ottla.extras import extra
from ottla.loopback import allowed_hosts, is_loopback

with extra("console"):
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_BODY_BYTES = 1 << 20
MOST_HEAD_BYTES = 1 << 16
"""The limit on the request line and the headers together."""
MOST_CONNECTIONS = 256
"""Further connections are closed at once: a browser's page must not use up the descriptors that the process needs."""
REQUEST_SECONDS = 30.0
"""The time for a client to send the head of a request, and the same again for its body."""
IDLE_SECONDS = 60
"""The time after which an idle connection is closed."""
END_SECONDS = 1
"""The time for requests to finish when the server ends."""
FOREIGN_SITES = ("cross-site", "same-site")
"""Values of Sec-Fetch-Site, which only browsers send, for requests of pages of other sites."""


class HttpRefusal(NamedTuple):
    """The status and message of a rejected request."""

    status: int
    sentence: str


class Guard:
    """The rules that reject a request before its body is read. Pure."""

    def __init__(self, host: str, port: int, most_body_bytes: int = MOST_BODY_BYTES, scheme: str = "http") -> None:
        self._hosts = allowed_hosts(host, port)
        self._origins = frozenset(f"{scheme}://{one}" for one in self._hosts)
        self._is_local = is_loopback(host)
        self._address = f"127.0.0.1:{port}" if self._is_local else f"{host}:{port}"
        self._scheme = scheme
        self._most_body_bytes = most_body_bytes

    def check_request(self, headers: Mapping[str, Sequence[str]]) -> HttpRefusal | None:
        """Return the reason to reject a request, or None; the names of `headers` are in lower case."""
        hosts = headers.get("host", ())
        if self._is_local and (not hosts or any(one.lower() not in self._hosts for one in hosts)):
            return HttpRefusal(
                403, f"Host {', '.join(hosts)!r} is not this server: use {self._scheme}://{self._address}"
            )
        for origin in headers.get("origin", ()):
            if origin.lower() not in self._origins:
                return HttpRefusal(403, f"requests of pages of {origin!r} are rejected: use a program, such as curl")
        for site in headers.get("sec-fetch-site", ()):
            if site.lower() in FOREIGN_SITES:
                return HttpRefusal(403, f"requests of pages of other sites ({site}) are rejected: use a program")
        if "transfer-encoding" in headers:
            return HttpRefusal(411, "Transfer-Encoding is not supported: send the body with Content-Length")
        length = next(iter(headers.get("content-length", ())), "0")
        if len(length) > len(str(self._most_body_bytes)) or int(length) > self._most_body_bytes:
            return refuse_long_body(length, self._most_body_bytes)  # h11 has checked that it is a number
        return None


def refuse_long_body(length: object, most: int) -> HttpRefusal:
    """Return the refusal of a body that is too long."""
    return HttpRefusal(413, f"the body has {str(length)[:20]} bytes, and {most} are allowed")


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


def make_config(app: Any, **more: Any) -> Any:
    """Return uvicorn's configuration for an ASGI application, with these limits."""
    settings: dict[str, Any] = {
        "http": TimedProtocol,
        "ws": "none",
        "loop": "asyncio",
        "interface": "asgi3",
        "lifespan": "off",
        "log_config": None,
        "log_level": "critical",
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,
        "timeout_keep_alive": IDLE_SECONDS,
        "timeout_graceful_shutdown": END_SECONDS,
        "h11_max_incomplete_event_size": MOST_HEAD_BYTES,
    }
    return uvicorn.Config(app, **{**settings, **more})


async def read_body(receive: Any, most_bytes: int = MOST_BODY_BYTES) -> bytes | HttpRefusal | None:
    """Return the body of an ASGI request, a refusal if it is too long or too slow, or None if the client disconnected."""
    body = bytearray()
    try:
        async with asyncio.timeout(REQUEST_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                body += message.get("body", b"")
                if len(body) > most_bytes:
                    return refuse_long_body(f"more than {most_bytes}", most_bytes)
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        return HttpRefusal(408, f"the body did not arrive within {REQUEST_SECONDS:.0f} s")
