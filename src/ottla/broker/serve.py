"""Run a broker or a controller in the main thread of its process until it is stopped."""

from __future__ import annotations

import gc
import os
import resource
import signal
from collections import Counter
from collections.abc import Callable, Iterable
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol

from ottla.broker.settings.config import BrokerConfig
from ottla.compiled import warn_if_uncompiled
from ottla.errors import KafkaError, OttlaError
from ottla.settings_class import changed
from ottla.uncollected import uncollected

if TYPE_CHECKING:
    from ottla.broker.introspection.introspection_socket import IntrospectionSocket
    from ottla.broker.introspection.metrics_page import MetricsPage
    from ottla.broker.network_server.request_counts import RequestCounts
    from ottla.broker.network_server.request_latencies import Latencies
    from ottla.broker.server import Server

INTERRUPTED = 130
"""The exit status after Ctrl-C, as shells define it."""
FIRST_INTERRUPT = b"ottla broker: stopping; Ctrl-C again ends it at once\n"
SECOND_INTERRUPT = b"ottla broker: ended at once; the next start checks the logs\n"
WHOLE_WALKS = 150
"""The threshold of the collector's oldest generation.

With Python's default of 10, full collections took a quarter of the time of electing a thousand partitions. A higher
threshold of the young generation would block the loop for more than a millisecond, many times a second.
"""


class Serves(Protocol):
    """A node that can be served."""

    @property
    def addresses(self) -> dict[str, str]:
        """The address of each listener, by its name."""

    def when_ready(self, tell: Callable[[], None]) -> None:
        """Have `tell` called once requests are served."""

    def stop(self) -> None:
        """Stop `run`; from any thread, or from a signal handler."""

    def run(self) -> None:
        """Serve until `stop`."""


def serve(
    config: BrokerConfig,
    ready: Callable[[Serves], None],
    ends_by: Iterable[int] = (signal.SIGTERM, signal.SIGINT),
    begun: Callable[[Serves], None] = lambda server: None,
) -> None:
    """Start a node, call `ready`, and serve until one of the signals `ends_by`. OttlaError if it cannot start.

    `begun` is called before `ready`, as soon as the node can be stopped: in a cluster, starting may take long.

    After a signal, requests under way are finished within seconds. A second SIGINT ends the process at once, without
    loss of acknowledged records.
    """
    allow_many_files()
    page, config = page_at(config)  # its port before anything in the directory is touched
    with uncollected():
        server = make_server(config)
    # Objects that are loaded by now are permanent, so the collector need not traverse them.
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], WHOLE_WALKS)
    warn_if_uncompiled()

    stopping = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopping
        before, stopping = stopping, True  # first, as the next signal may interrupt this handler
        server.stop()
        if number == signal.SIGINT:
            print_line(SECOND_INTERRUPT if before else FIRST_INTERRUPT)
            if before:
                os._exit(INTERRUPTED)

    for number in ends_by:
        signal.signal(number, stop)
    window = serve_metrics(page, server, config)

    def print_status() -> None:
        if page is not None:
            page.is_ready = True
        ready(server)

    try:
        begun(server)
        server.when_ready(print_status)
        server.run()
    finally:
        for each in (page, window):
            if each is not None:
                each.close()


def make_server(config: BrokerConfig) -> Server:
    """Make the node that the settings describe. OttlaError states why it cannot start."""
    from ottla.broker.server import Server

    try:
        server = Server(config)
        if config.is_alone:
            server.start_serving()
        return server
    except KafkaError as error:
        raise OttlaError(error.reason) from error  # the code is for clients


def page_at(config: BrokerConfig) -> tuple[MetricsPage | None, BrokerConfig]:
    """Start the metrics page if `metrics.listen` is set; otherwise nothing is counted or loaded.

    The returned settings have the port that was chosen for 0.
    """
    if not config.metrics_listen:
        return None, config
    from ottla.broker.introspection.metrics_page import MetricsPage

    page = MetricsPage(config.metrics_listen)
    host, _, _ = config.metrics_listen.rpartition(":")
    return page, changed(config, metrics_listen=f"{host}:{page.port}")


def serve_metrics(page: MetricsPage | None, server: Any, config: BrokerConfig) -> IntrospectionSocket | None:
    """Publish a server's figures, and on request its state. Both need its requests measured."""
    opens = bool(config.trace_folder) and not config.is_controller
    if page is None and not opens:
        return None
    from ottla.broker.network_server.request_counts import RequestCounts
    from ottla.broker.network_server.request_latencies import Latencies

    counts, latencies = RequestCounts(), Latencies()
    server.measure(counts, latencies)
    if page is not None:
        serve_metrics_page(page, server, config, counts, latencies)
    return make_introspection(server, config, counts, latencies) if opens else None


def make_introspection(
    server: Any, config: BrokerConfig, counts: RequestCounts, latencies: Latencies
) -> IntrospectionSocket:
    from ottla.broker.introspection.introspection_socket import IntrospectionSocket

    connected = lambda: len(server.connections.by_channel)  # noqa: E731
    return IntrospectionSocket(config.trace_folder, server.node, counts, latencies, server.call_soon, connected)


def serve_metrics_page(
    page: MetricsPage, server: Any, config: BrokerConfig, counts: RequestCounts, latencies: Latencies
) -> None:
    """Start the metrics page of a server."""
    from ottla.broker.introspection.metrics import Figure, Histogram, list_broker_figures, list_controller_figures
    from ottla.broker.introspection.pushed_metrics_page import PushedPage, build_page

    def figures() -> list[Figure | Histogram]:
        if config.is_controller:
            return list(list_controller_figures(server.controller.driver.raft))
        listeners = Counter(each.listener for each in server.connections.by_channel.values())
        own = list_controller_figures(server.controller.driver.raft) if config.has_both_roles else ()
        return [*list_broker_figures(server.node, counts, latencies, listeners), *own]

    def pushed() -> PushedPage:
        return (
            []
            if config.is_controller
            else build_page(server.node.telemetry.list_metrics(server.node.clock.monotonic()))
        )

    page.show(server.call_soon, figures, pushed)


def print_line(line: bytes) -> None:
    """Write to standard error from a signal handler. `print` is not reentrant."""
    try:
        os.write(2, line)
    except OSError:
        pass


def allow_many_files() -> None:
    """Raise the limit of open files to the maximum: each partition and each connection needs one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):  # macOS has a limit below the hard one
            pass
