"""`/metrics` for Prometheus, `/healthz` and `/readyz` for whoever starts and watches brokers, over HTTP in a thread of their own.

    GET /metrics ──► figures, taken in the broker's loop ──► prometheus-client's text, and that of what clients pushed
    GET /healthz     200 as long as the loop answers
    GET /readyz      200 once clients are served; 503 before, and where the loop does not answer

Needs the extra `metrics`. Nothing here is on a request's way.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, TypeVar

from ottla.broker.figures import COUNTER, Figure, Histogram
from ottla.broker.loop_call import NotInTime, call_in_loop
from ottla.broker.pushed_page import Taken, written
from ottla.broker.settings.endpoints import parse_address, reached_from_here
from ottla.cannot_listen import cannot_listen
from ottla.errors import ConfigError
from ottla.extras import extra

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

T = TypeVar("T")
LOOP_SECONDS = 5.0
"""How long the loop may take to answer before it counts as stuck."""
TEXT = "text/plain; charset=utf-8"


class MetricsPage:
    """Has its port from the moment it is made until `close`, and answers from `show` on."""

    def __init__(self, listen: str) -> None:
        """ConfigError where that address cannot be had, MissingExtraError without prometheus-client."""
        self.is_ready = False
        """Whether clients are served."""
        self._call_soon: Callable[[Callable[[], None]], None]
        self._figures: Callable[[], list[Figure | Histogram]]
        self._pushed: Callable[[], Taken]
        self._thread: threading.Thread | None = None
        with extra("metrics"):
            from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector

        self._registry = CollectorRegistry()
        self._registry.register(self)
        for own in (ProcessCollector, PlatformCollector):
            own(registry=self._registry)
        self._server = listening(listen, self)
        host, port = self._server.server_address[:2]
        self.port = int(port)
        self.address = reached_from_here(str(host), int(port))

    def show(
        self,
        call_soon: Callable[[Callable[[], None]], None],
        figures: Callable[[], list[Figure | Histogram]],
        pushed: Callable[[], Taken] = list,
    ) -> None:
        """Begin to answer; `figures` and `pushed` are called in the loop."""
        self._call_soon, self._figures, self._pushed = call_soon, figures, pushed
        self._thread = threading.Thread(target=self._server.serve_forever, name="ottla-metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def collect(self) -> Iterator[Metric]:
        """As prometheus-client asks for it."""
        yield from map(family, self.in_loop(self._figures))

    def describe(self) -> list[Metric]:
        """Nothing beforehand: the loop may not run yet."""
        return []

    def in_loop(self, work: Callable[[], T]) -> T:
        """Have the loop do it, and wait; NotInTime where that takes too long."""
        return call_in_loop(self._call_soon, work, LOOP_SECONDS)

    def answer(self, path: str) -> tuple[int, str, bytes]:
        """What whoever asks for that path is sent: status, content type, body."""
        from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

        try:
            if path == "/metrics":
                text = generate_latest(self._registry)
                return 200, CONTENT_TYPE_LATEST, text + written(self.in_loop(self._pushed)).encode()
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


def family(figure: Figure | Histogram) -> Metric:
    """A figure in the library's words."""
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


def listening(listen: str, page: MetricsPage) -> ThreadingHTTPServer:
    """A server of the page; ConfigError where it cannot listen there."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, kind, body = page.answer(self.path.partition("?")[0])
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Nobody wants a line for each look."""

    host, port = parse_address("metrics.listen", listen, listen)
    try:
        server = ThreadingHTTPServer((host, port), Handler)
    except OSError as error:
        raise ConfigError(cannot_listen(error, host, port, "metrics.listen")) from None
    server.daemon_threads = True
    return server
