"""A broker, or a controller, in the main thread of a process of its own, until it is told to end."""

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
    from ottla.broker.inside.window import Window
    from ottla.broker.metrics_page import MetricsPage
    from ottla.broker.requests.latencies import Latencies
    from ottla.broker.requests.request_counts import RequestCounts
    from ottla.broker.server import Server

INTERRUPTED = 130
"""The exit status after Ctrl-C, by the custom of shells."""
FIRST_INTERRUPT = b"ottla broker: stopping; Ctrl-C again ends it at once\n"
SECOND_INTERRUPT = b"ottla broker: ended at once; the next start checks the logs\n"
WHOLE_WALKS = 150
"""How many walks of the collector through middle-aged objects come to one through all that live. Python's 10 were a quarter of the time that a
hand-over of a thousand partitions took; to let young ones gather instead would stop the loop for a millisecond and more, many times a second.
"""


class Serves(Protocol):
    """What runs in the process."""

    @property
    def addresses(self) -> dict[str, str]:
        """Where it listens, by the names of listeners."""

    def when_ready(self, tell: Callable[[], None]) -> None:
        """Have `tell` called once others are answered."""

    def stop(self) -> None:
        """Make `run` end; from any thread, or from a signal handler."""

    def run(self) -> None:
        """Serve until `stop`."""


def serve(
    config: BrokerConfig,
    ready: Callable[[Serves], None],
    ends_by: Iterable[int] = (signal.SIGTERM, signal.SIGINT),
    begun: Callable[[Serves], None] = lambda server: None,
) -> None:
    """Start, call `ready`, and serve until one of the signals `ends_by`; OttlaError says why it cannot start.

    `begun` is called before that, as soon as there is something to stop: a cluster lets a broker in when it can.

    What is under way is finished then, within seconds. A SIGINT after that does not wait: the process ends on the spot,
    and loses nothing that it acknowledged.
    """
    allow_many_files()
    page, config = page_at(config)  # its port before anything in the directory is touched
    with uncollected():
        server = make_server(config)
    # What is loaded by now stays: the collector need not walk through it again and again.
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], WHOLE_WALKS)
    warn_if_uncompiled()

    stopping = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopping
        before, stopping = stopping, True  # at first: the next signal may come amid this
        server.stop()
        if number == signal.SIGINT:
            say(SECOND_INTERRUPT if before else FIRST_INTERRUPT)
            if before:
                os._exit(INTERRUPTED)

    for number in ends_by:
        signal.signal(number, stop)
    window = show_figures(page, server, config)

    def tell() -> None:
        if page is not None:
            page.is_ready = True
        ready(server)

    try:
        begun(server)
        server.when_ready(tell)
        server.run()
    finally:
        for each in (page, window):
            if each is not None:
                each.close()


def make_server(config: BrokerConfig) -> Server:
    """Make the node that the settings describe. OttlaError states why it cannot start."""
    from ottla.broker.server import Server

    try:
        return Server(config)
    except KafkaError as error:
        raise OttlaError(error.reason) from error  # the code is for clients


def page_at(config: BrokerConfig) -> tuple[MetricsPage | None, BrokerConfig]:
    """Where figures are to be read, if that is wanted; else nothing is counted and nothing loaded.

    The settings come back with the port that was taken for 0, by which others find the page.
    """
    if not config.metrics_listen:
        return None, config
    from ottla.broker.metrics_page import MetricsPage

    page = MetricsPage(config.metrics_listen)
    host, _, _ = config.metrics_listen.rpartition(":")
    return page, changed(config, metrics_listen=f"{host}:{page.port}")


def show_figures(page: MetricsPage | None, server: Any, config: BrokerConfig) -> Window | None:
    """Have a server's figures read there from now on, and its inside where that is wanted; both need its requests measured."""
    opens = bool(config.trace_folder) and not config.controls
    if page is None and not opens:
        return None
    from ottla.broker.requests.latencies import Latencies
    from ottla.broker.requests.request_counts import RequestCounts

    counts, latencies = RequestCounts(), Latencies()
    server.measure(counts, latencies)
    if page is not None:
        show_page(page, server, config, counts, latencies)
    return window_of(server, config, counts, latencies) if opens else None


def window_of(server: Any, config: BrokerConfig, counts: RequestCounts, latencies: Latencies) -> Window:
    from ottla.broker.inside.window import Window

    connected = lambda: len(server.connections.by_channel)  # noqa: E731
    return Window(config.trace_folder, server.node, counts, latencies, server.call_soon, connected)


def show_page(
    page: MetricsPage, server: Any, config: BrokerConfig, counts: RequestCounts, latencies: Latencies
) -> None:
    """Begin to answer on a page of metrics."""
    from ottla.broker.figures import Figure, Histogram, of_broker, of_controller
    from ottla.broker.pushed_page import Taken, taken

    def figures() -> list[Figure | Histogram]:
        if config.controls:
            return list(of_controller(server.controller.driver.raft))
        listeners = Counter(each.listener for each in server.connections.by_channel.values())
        own = of_controller(server.controller.driver.raft) if config.combines else ()
        return [*of_broker(server.node, counts, latencies, listeners), *own]

    def pushed() -> Taken:
        return [] if config.controls else taken(server.node.telemetry.pushed(server.node.clock.monotonic()))

    page.show(server.call_soon, figures, pushed)


def say(line: bytes) -> None:
    """Write to standard error, from a signal handler: `print` might be amid a line."""
    try:
        os.write(2, line)
    except OSError:
        pass


def allow_many_files() -> None:
    """Raise the limit of open files as far as the system lets us: each partition and each connection takes one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):  # macOS has a limit below the hard one
            pass
