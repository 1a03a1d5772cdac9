"""Run a broker or a controller in the main thread of its process until it is stopped."""

from __future__ import annotations

import gc
import logging
import os
import resource
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol

from ottla._version import __version__
from ottla.broker.settings.config import BrokerConfig
from ottla.compiled import warn_if_uncompiled
from ottla.errors import KafkaError, OttlaError
from ottla.settings_class import changed
from ottla.storage.directory.meta_properties import FILE_NAME as META
from ottla.uncollected import uncollected

if TYPE_CHECKING:
    from ottla.broker.controller.raft_driver import RaftDriver
    from ottla.broker.introspection.introspection_socket import IntrospectionSocket
    from ottla.broker.introspection.metrics_page import MetricsPage
    from ottla.broker.network_server.request_counts import RequestCounts
    from ottla.broker.network_server.request_latencies import Latencies
    from ottla.broker.server import Server
    from ottla.coordination.cluster.metadata import ClusterMetadata
    from ottla.coordination.quorum.raft import Raft

log = logging.getLogger("ottla.broker.lifecycle")
"""Starts and stops of the node, at INFO. `ottla broker --config` shows them at any level of the log."""
directory_log = logging.getLogger("ottla.broker.lifecycle.directories")
"""New data directories, at INFO. `ottla broker` shows them at any level of the log: one may be a misspelt name."""
INTERRUPTED = 130
"""The exit status after Ctrl-C, as shells define it."""
FIRST_INTERRUPT = b"ottla broker: stopping; Ctrl-C again ends it at once\n"
SECOND_INTERRUPT = b"ottla broker: ended at once; the next start checks the logs\n"
LEAST_FILES = 128
"""The lowest limit of open files: 64 for indexes, checkpoints and peers, 16 for logs, and the rest for connections."""
SOON_SECONDS = 14 * 86_400.0
"""The time before the end of a certificate from which on a start warns about it."""
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

    def when_ready(self, callback: Callable[[], None]) -> None:
        """Have `callback` called once requests are served."""

    def stop(self) -> None:
        """Stop `run`; from any thread, or from a signal handler."""

    def run(self) -> None:
        """Serve until `stop`."""


def serve(
    config: BrokerConfig,
    ready: Callable[[Serves], None],
    ends_by: Iterable[int] = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP),
    on_started: Callable[[Serves], None] = lambda server: None,
) -> None:
    """Start a node, call `ready`, and serve until one of the signals `ends_by`. OttlaError if it cannot start.

    `on_started` is called before `ready`, as soon as the node can be stopped: in a cluster, starting may take long.

    After a signal, requests under way are finished within seconds. A second SIGINT ends the process at once, without
    loss of acknowledged records. SIGHUP stays ignored if it is, as under `nohup`.
    """
    started = time.monotonic()
    allow_many_files()
    log_start(config)
    page, config = page_at(config)  # its port before anything in the directory is touched
    new_directories = find_new_directories(config)
    with uncollected():
        server = make_server(config)
    log_new_directories(config, new_directories, server.cluster_id)
    # Objects that are loaded by now are permanent, so the collector need not traverse them.
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], WHOLE_WALKS)
    warn_if_uncompiled()
    warn_of_certificates(server.certificate_expiries(), time.time())

    signals = StopSignals(server)
    signals.install(ends_by)
    window = serve_metrics(page, server, config)

    def print_status() -> None:
        if page is not None:
            page.is_ready = True
        listeners = ",".join(f"{name}://{address}" for name, address in server.addresses.items())
        seconds = time.monotonic() - started
        log.info("started cluster=%s listeners=%s seconds=%.1f", server.cluster_id, listeners, seconds)
        ready(server)

    try:
        on_started(server)
        server.when_ready(print_status)
        server.run()
        signals.log_end()
    finally:
        for each in (page, window):
            if each is not None:
                each.close()


class StopSignals:
    """Stops a server at the first signal. A second SIGINT ends the process at once."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._name, self._since = "", 0.0

    def install(self, numbers: Iterable[int]) -> None:
        """Handle these signals; SIGHUP only if it is not ignored."""
        for number in numbers:
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._stop)

    def log_end(self) -> None:
        """Log that the server has stopped because of a signal."""
        if self._name:
            log.info("stopped signal=%s seconds=%.1f", self._name, time.monotonic() - self._since)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        before, name = self._name, signal.Signals(number).name
        if not before:  # first, as the next signal may interrupt this handler
            self._name, self._since = name, time.monotonic()
            self._server.call_soon(lambda: log.info("stopping signal=%s", name))  # a handler must not write to the log
        self._server.stop()
        if number == signal.SIGINT:
            print_line(SECOND_INTERRUPT if before else FIRST_INTERRUPT)
            if before:
                os._exit(INTERRUPTED)


def warn_of_certificates(expiries: Mapping[str, float], now: float) -> None:
    """Log the listeners with a certificate that has expired or expires soon. Both times are in seconds since 1970."""
    for listener, expiry in expiries.items():
        if expiry - now < SOON_SECONDS:
            at = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(expiry))
            log.warning(
                "the certificate of listener %s %s %s: clients reject an expired one; replace the file, which is read again at the next "
                "connection",
                *(listener, "expired at" if expiry <= now else "expires at", at),
            )


def log_start(config: BrokerConfig) -> None:
    """Log the version and the identity of the node before it opens anything."""
    log.info(
        "starting version=%s pid=%d node=%d roles=%s directories=%s",
        *(__version__, os.getpid(), config.node_id, ",".join(config.process_roles) or "broker,controller"),
        ",".join(config.directories) or "temporary",
    )


def find_new_directories(config: BrokerConfig) -> dict[str, Path | None]:
    """Return the data directories that a start will create, each with an existing data directory of similar name if there is one."""
    if config.is_controller or config.joins_cluster:  # these need formatted directories
        return {}
    new = [Path(each) for each in config.directories if not os.path.lexists(os.path.join(each, META))]
    if not new:
        return {}
    from ottla.storage.directory.similar_directories import find_similar_directory

    return {str(each): find_similar_directory(each) for each in new}


def log_new_directories(config: BrokerConfig, new: Mapping[str, Path | None], cluster_id: str) -> None:
    """Log which data directories were created. Warn of each that may be a misspelt name of another."""
    kind = "new cluster" if len(new) == len(config.directories) else "cluster"
    for path, similar in new.items():
        directory_log.info("created data directory %s for %s %s", path, kind, cluster_id)
        if similar is not None:
            directory_log.warning(
                "%s is new and empty, and %s has data: if you meant that one, stop this broker and correct --data-dir or log.dirs",
                *(path, similar),
            )


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
    from ottla.broker.introspection.metrics import (
        Figure,
        Histogram,
        list_broker_figures,
        list_certificate_figures,
        list_controller_figures,
    )
    from ottla.broker.introspection.pushed_metrics_page import PushedPage, build_page

    def figures() -> list[Figure | Histogram]:
        certificates = list_certificate_figures(server.certificate_expiries())
        if config.is_controller:
            return [*list_controller_figures(*controller_state(server.controller.driver)), *certificates]
        listeners = Counter(each.listener for each in server.connections.by_channel.values())
        own = list_controller_figures(*controller_state(server.controller.driver)) if config.has_both_roles else ()
        return [*list_broker_figures(server.node, counts, latencies, listeners), *own, *certificates]

    def pushed() -> PushedPage:
        return (
            []
            if config.is_controller
            else build_page(server.node.telemetry.list_metrics(server.node.clock.monotonic()))
        )

    page.show(server.call_soon, figures, pushed)


def controller_state(driver: RaftDriver) -> tuple[Raft, ClusterMetadata | None]:
    """Return the state of the quorum, and the metadata if this node is the active controller."""
    return driver.raft, None if driver.term is None else driver.term.machine.metadata


def print_line(line: bytes) -> None:
    """Write to standard error from a signal handler. `print` is not reentrant."""
    try:
        os.write(2, line)
    except OSError:
        pass


def allow_many_files() -> None:
    """Raise the limit of open files to the maximum: each partition and each connection needs one.

    Raise OttlaError if too few are left for clients: the broker would start, and then let most requests wait forever.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):  # macOS has a limit below the hard one
            pass
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit != resource.RLIM_INFINITY and limit < LEAST_FILES:
        raise OttlaError(
            f"the limit of open files is {limit}, and a broker needs {LEAST_FILES} or more, 100,000 for many clients and partitions: "
            "raise it with ulimit -n, or LimitNOFILE= of systemd"
        )
