"""`/metrics` for Prometheus, and `/healthz` and `/readyz` for supervisors, over HTTP.

    GET /metrics ──► metrics, collected in the broker's loop ──► prometheus-client's text, and the metrics that clients pushed
    GET /healthz     200 while the loop responds
    GET /readyz      200 while clients are served; 503 before, and if the loop does not respond

One thread waits for all connections, and two create responses: an idle connection occupies neither. A request must
arrive within some seconds, and if there are too many connections the oldest is closed. Requires the extra `metrics`.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

from ottla.broker.event_loop.loop_call import NotInTime, call_in_loop
from ottla.broker.introspection.metrics import COUNTER, Figure, Histogram
from ottla.broker.introspection.pushed_metrics_page import PushedPage, format_page
from ottla.broker.settings.endpoints import parse_address, reached_from_here
from ottla.cannot_listen import cannot_listen
from ottla.errors import ConfigError
from ottla.extras import extra

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

T = TypeVar("T")
LOOP_SECONDS = 5.0
"""The time without a response after which the loop counts as stuck."""
REQUEST_SECONDS = 10.0
"""The time limit for receiving a request, and for sending the response."""
MOST_CONNECTIONS = 64
MOST_HEAD_BYTES = 16 * 1024
WORKERS = 2
"""Threads that create responses; each may wait for the loop."""
TEXT = "text/plain; charset=utf-8"


class MetricsPage:
    """Binds its port at the construction, and responds from `show` until `close`."""

    def __init__(self, listen: str) -> None:
        """Raise ConfigError if the address cannot be bound, MissingExtraError without prometheus-client."""
        self.is_ready = False
        """True once clients are served."""
        self._call_soon: Callable[[Callable[[], None]], None]
        self._figures: Callable[[], list[Figure | Histogram]]
        self._pushed: Callable[[], PushedPage]
        self._thread: threading.Thread | None = None
        with extra("metrics"):
            from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector

        self._registry = CollectorRegistry()
        self._registry.register(self)
        for own in (ProcessCollector, PlatformCollector):
            own(registry=self._registry)
        self._socket = open_socket(listen)
        host, port = self._socket.getsockname()[:2]
        self.port = int(port)
        self.address = reached_from_here(str(host), int(port))
        self._workers = ThreadPoolExecutor(WORKERS, "ottla-metrics-answer")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listening: asyncio.Task[asyncio.Server]
        self._connections: dict[asyncio.Task[None], None] = {}
        """The tasks of open connections, the oldest first."""

    def show(
        self,
        call_soon: Callable[[Callable[[], None]], None],
        figures: Callable[[], list[Figure | Histogram]],
        pushed: Callable[[], PushedPage] = list,
    ) -> None:
        """Start to respond. `figures` and `pushed` are called in the loop."""
        self._call_soon, self._figures, self._pushed = call_soon, figures, pushed
        self._loop = asyncio.new_event_loop()
        self._listening = self._loop.create_task(self._listen())
        self._thread = threading.Thread(target=self._loop.run_forever, name="ottla-metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        loop = self._loop
        if loop is not None and self._thread is not None:
            asyncio.run_coroutine_threadsafe(self._end(), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join()
            loop.close()
        self._workers.shutdown()
        self._socket.close()

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, sock=self._socket, limit=MOST_HEAD_BYTES)

    async def _end(self) -> None:
        (await self._listening).close()
        tasks = [each for each in asyncio.all_tasks() if each is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request of a connection, and close it."""
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = None
        if len(self._connections) > MOST_CONNECTIONS:
            oldest = next(iter(self._connections))
            del self._connections[oldest]
            oldest.cancel()
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), REQUEST_SECONDS)
            loop = asyncio.get_running_loop()
            writer.write(await loop.run_in_executor(self._workers, self._respond, head))
            await asyncio.wait_for(writer.drain(), REQUEST_SECONDS)
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client has closed the connection, or sent nothing
        except asyncio.CancelledError:
            pass  # others need its place, or the page is closed
        finally:
            self._connections.pop(task, None)
            writer.close()

    def _respond(self, head: bytes) -> bytes:
        """Return the response to the head of a request."""
        method, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
        target, _, version = rest.rpartition(" ")
        if not version.startswith("HTTP/"):
            status, kind, body = 400, TEXT, b"this is no HTTP request\n"
        elif method != "GET":
            status, kind, body = 405, TEXT, b"only GET is answered\n"
        else:
            status, kind, body = self.answer(target.partition("?")[0])
        lines = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
            f"Content-Type: {kind}",
            f"Content-Length: {len(body)}",
            "Connection: close",
        )
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics, as prometheus-client's collectors do."""
        yield from map(make_family, self.in_loop(self._figures))

    def describe(self) -> list[Metric]:
        """Return no descriptions, as the loop may not run yet."""
        return []

    def in_loop(self, work: Callable[[], T]) -> T:
        """Run work in the loop, and wait for the result. NotInTime if it takes too long."""
        return call_in_loop(self._call_soon, work, LOOP_SECONDS)

    def answer(self, path: str) -> tuple[int, str, bytes]:
        """Return the response for a path: status, content type and body."""
        from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

        try:
            if path == "/metrics":
                text = generate_latest(self._registry)
                return 200, CONTENT_TYPE_LATEST, text + format_page(self.in_loop(self._pushed)).encode()
            if path == "/healthz":
                self.in_loop(lambda: None)
                return 200, TEXT, b"ok\n"
            if path == "/readyz":
                self.in_loop(lambda: None)
                return (200, TEXT, b"ready\n") if self.is_ready else (503, TEXT, NOT_YET)
        except NotInTime:
            return 503, TEXT, f"the broker's loop has not answered within {LOOP_SECONDS:g} s\n".encode()
        return 404, TEXT, b"there are /metrics, /healthz and /readyz\n"


NOT_YET = b"not ready: the controllers have not let this broker in yet\n"


def make_family(figure: Figure | Histogram) -> Metric:
    """Return a metric as prometheus-client represents it."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

    if isinstance(figure, Histogram):
        counted = HistogramMetricFamily(figure.name, figure.meaning, labels=figure.labels)
        for labels, buckets, total in figure.samples:
            counted.add_metric(labels, buckets, total)
        return counted
    kind: Any = CounterMetricFamily if figure.kind == COUNTER else GaugeMetricFamily
    found = kind(figure.name, figure.meaning, labels=figure.labels)
    for labels, value in figure.samples:
        found.add_metric(labels, value)
    return found  # type: ignore[no-any-return]


def open_socket(listen: str) -> socket.socket:
    """Return a listening socket. ConfigError if the address cannot be bound."""
    host, port = parse_address("metrics.listen", listen, listen)
    try:
        return socket.create_server((host, port))
    except OSError as error:
        raise ConfigError(cannot_listen(error, host, port, "metrics.listen")) from None
