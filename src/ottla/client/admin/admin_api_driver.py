"""Send requests for many keys to the right brokers, and retry the keys that failed temporarily.

Corresponds to Java's AdminApiDriver: a round looks up the broker of each key, sends one request per broker, and reads
the result of each key. Keys with a retriable error take part in the next round, after a backoff and a metadata update,
until the deadline.

Any number of threads may use a driver; calls run one at a time. An `AdminQuery` defines the lookup, the request and the
meaning of the response; connections, rounds and the deadline are handled here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from random import Random
from types import MappingProxyType
from typing import Any, Generic, TypeVar
from uuid import UUID

from msgspec import Struct

from ottla.client.admin.config import AdminConfig
from ottla.client.consumer.consumer_network_client import ConsumerNetworkClient
from ottla.client.interface.arguments import checked_timeout
from ottla.client.metadata.metadata import Metadata
from ottla.client.metadata.metadata_snapshot import MetadataSnapshot
from ottla.client.metrics.client_metrics import ClientMetrics, MetricsBuilder
from ottla.client.network.bootstrap import bootstrap_nodes
from ottla.client.network.network_client import NetworkClient
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.client.runtime.deadline import Deadline
from ottla.client.runtime.future import Future
from ottla.clock import SystemClock
from ottla.errors import (
    ErrorCode,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    UnsupportedVersionError,
    error_for,
    few_of,
)
from ottla.model import Node
from ottla.protocol.apis import api_of

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
Lookup = Callable[["AdminApiDriver", list[K], Deadline], Mapping[K, Node | KafkaError]]
"""Returns the broker for each key, or the error of the lookup."""
CLOSED = "the admin client is closed; make a new one"
TIMEOUT_SETTING = "default.api.timeout.ms, or the call's own timeout"


class AdminQuery(Struct, Generic[K, V], frozen=True):
    """A request for keys, and the function that reads its response."""

    lookup: Lookup[K]
    request: Callable[[list[K]], Any]
    read: Callable[[list[K], Any], Mapping[K, V | KafkaError]]
    """Returns the result of each key. A key that is missing in the response becomes an error."""
    can_batch: bool = True
    """True if one request may contain many keys."""
    max_version: int | None = None


class AdminApiDriver:
    """Connections to a cluster, shared by all admin calls."""

    def __init__(self, config: AdminConfig, client_id: str) -> None:
        self.config = config
        self.clock = SystemClock()
        random = Random()
        self.backoff = ExponentialBackoff(config.retry_backoff_ms, config.retry_backoff_max_ms, random)
        self.metadata = Metadata(
            bootstrap_nodes(config.bootstrap_servers, config.client_dns_lookup, protocol=config.security_protocol),
            max_age_ms=config.metadata_max_age_ms,
            backoff=self.backoff,
            allow_auto_topic_creation=False,
        )
        network = NetworkClient(config, self.metadata, client_id=client_id, clock=self.clock, random=random)
        self.client = ConsumerNetworkClient(network, request_timeout_ms=config.request_timeout_ms)
        self._take_metrics = partial(connection_metrics, client_id)
        if config.enable_metrics_push:
            network.telemetry.enable(self._take_metrics)
        self._lock = threading.Lock()
        self._closed = False

    def run_query(
        self, query: AdminQuery[K, V], keys: Iterable[K], timeout: float | None
    ) -> tuple[dict[K, V], dict[K, KafkaError]]:
        """Return the results, and the errors of the other keys. Raises KafkaTimeoutError if no broker responds."""
        found: dict[K, V] = {}
        failed: dict[K, KafkaError] = {}
        with self.hold_lock():
            deadline = Deadline.after(self.timeout_seconds(timeout), self.clock.monotonic())
            left, attempts = dict.fromkeys(keys), 0
            while left:
                try:
                    if not all(is_broker_error(failed[key]) for key in left if key in failed):
                        self._refresh_metadata(deadline)
                    outcomes = self.run_round(query, list(left), deadline)
                except KafkaTimeoutError:
                    if not all(is_broker_error(failed.get(key)) for key in left):
                        raise
                    break  # the error of the last response is more helpful than a timeout
                for key, outcome in outcomes.items():
                    failed.pop(key, None)
                    if isinstance(outcome, KafkaError):
                        failed[key] = outcome
                        if is_retriable(outcome):
                            continue
                    else:
                        found[key] = outcome
                    left.pop(key, None)
                attempts += 1
                if left and not self._back_off(attempts, deadline):
                    break
        return found, failed

    def query_each_broker(
        self, request: Any, read: Callable[[list[int], Any], Mapping[int, V | KafkaError]], timeout: float | None
    ) -> dict[int, V]:
        """Send the same request to every broker and return the responses by broker id. Raises the first KafkaError."""
        query: AdminQuery[int, V] = AdminQuery(lookup_each_broker, lambda _: request, read, can_batch=False)
        with self.hold_lock():
            brokers = list(self.brokers(Deadline.after(self.timeout_seconds(timeout), self.clock.monotonic())))
        found, failed = self.run_query(query, brokers, timeout)
        raise_first(failed)
        return found

    def send_one(
        self,
        lookup: Lookup[str],
        request: Any,
        what: str,
        timeout: float | None,
        meanings: Mapping[int, str] = MappingProxyType({}),
    ) -> Any:
        """Send one request and return its response.

        Raises its error with the broker's message, or else with the meaning of the code.
        """

        def read(_: list[str], message: Any) -> dict[str, Any]:
            if not (code := message.error_code):
                return {what: message}
            return {what: error_for(code, getattr(message, "error_message", None) or meanings.get(code) or what)}

        query: AdminQuery[str, Any] = AdminQuery(lookup, lambda _: request, read)
        found, failed = self.run_query(query, [what], timeout)
        raise_first(failed)
        return found[what]

    def run_round(self, query: AdminQuery[K, V], keys: list[K], deadline: Deadline) -> dict[K, V | KafkaError]:
        """Request each key once, from all brokers in parallel."""
        located = query.lookup(self, keys, deadline)
        outcomes: dict[K, V | KafkaError] = {
            key: error for key, error in located.items() if isinstance(error, KafkaError)
        }
        requested = []
        for node, node_keys in group_by_broker(located, can_batch=query.can_batch):
            request = query.request(node_keys)
            future = self.client.send(node, request, max_version=query.max_version)
            requested.append((node, api_of(request).name, node_keys, future))
        for _, _, node_keys, future in requested:
            if not self.client.poll_until(future, deadline.at):
                raise self._abandon([(node, api) for node, api, _, other in requested if not other.done()], deadline)
            read: Mapping[K, V | KafkaError] = results_by_key(query, node_keys, future)
            outcomes.update(read)
        return outcomes

    def _abandon(self, requests: Iterable[tuple[Node, str]], deadline: Deadline) -> KafkaTimeoutError:
        """Return the error of a round that received no response in time. Close the connections that still wait for one.

        They could not be used for the next call, as in Java.
        """
        network = self.client.client
        silent = [(node, api) for node, api in requests if network.in_flight_requests.count(node.node_id)]
        for node, api in silent:
            network.disconnect(node.node_id, f"no response to {api} within the timeout of the call")
        if not silent:
            return self.timeout_error(deadline)
        nodes = few_of([f"{node} (node {node.node_id})" for node, _ in silent])
        return KafkaTimeoutError(
            f"no response to {silent[0][1]} from {nodes} within {deadline.span * 1000:.0f} ms ({TIMEOUT_SETTING})"
        )

    def brokers(self, deadline: Deadline) -> Mapping[int, Node]:
        """Return the known brokers by id, waiting for the first metadata."""
        while self.metadata.version == 0:
            if not self.client.await_metadata(deadline.at):
                raise self.timeout_error(deadline)
        return self.metadata.cluster.nodes

    def refresh_cluster(self, timeout: float | None) -> MetadataSnapshot:
        """Return the brokers and the controller after a metadata update."""
        deadline = Deadline.after(self.timeout_seconds(timeout), self.clock.monotonic())
        with self.hold_lock():
            self._refresh_metadata(deadline)
            return self.metadata.cluster

    @contextmanager
    def hold_lock(self) -> Iterator[None]:
        """Hold the lock of the driver for one call. Raises IllegalStateError if the client is closed."""
        with self._lock:
            if self._closed:
                raise IllegalStateError(CLOSED)
            yield

    def metrics(self) -> ClientMetrics:
        """Return the metrics of the connections; from any thread, without the lock."""
        return self._take_metrics(self.client.client)

    def client_instance_id(self, timeout: float | None) -> UUID:
        """Return the id under which metrics are pushed."""
        network = self.client.client
        with self.hold_lock():
            return self.client.run(network.telemetry.client_instance_id(network, self.timeout_seconds(timeout)))

    @property
    def closed(self) -> bool:
        """True after `close`."""
        return self._closed

    def close(self, timeout: float | None) -> None:
        """Close all connections. A call in another thread raises WakeupError. May be called again."""
        span = -1 if timeout is None else checked_timeout(timeout)
        self._closed = True
        self.client.wakeup()
        if not self._lock.acquire(timeout=span):
            raise KafkaTimeoutError(f"close timed out after {span:g} s: a call of another thread is still running")
        network = self.client.client
        try:
            with closing(self.client):
                self.client.run(network.telemetry.terminate(network), wakeable=False)
        finally:
            self._lock.release()

    def timeout_error(self, deadline: Deadline) -> KafkaTimeoutError:
        """Return the error of a call that received no response in time."""
        return self.client.client.unavailable_error(deadline.span * 1000, TIMEOUT_SETTING)

    def timeout_seconds(self, timeout: float | None) -> float:
        """Return the timeout of a call in seconds."""
        return self.config.default_api_timeout_ms / 1000 if timeout is None else checked_timeout(timeout)

    def timeout_ms(self, timeout: float | None) -> int:
        """Return the timeout that the broker applies to its part."""
        return min(self.config.request_timeout_ms, int(self.timeout_seconds(timeout) * 1000))

    def _refresh_metadata(self, deadline: Deadline) -> None:
        """Update the metadata after a request without response: the controller may have moved, or a broker may be down."""
        known = self.metadata.request_update()
        while self.metadata.version <= known:
            if not self.client.await_metadata(deadline.at):
                raise self.timeout_error(deadline)

    def _back_off(self, attempts: int, deadline: Deadline) -> bool:
        """Wait before the next round. Return False if there is no time for one."""
        now = self.clock.monotonic()
        if now >= deadline.at:
            return False
        retry_at = min(deadline.at, now + self.backoff.span(attempts))
        self.metadata.request_update()
        while (remaining := retry_at - self.clock.monotonic()) > 0:
            self.client.poll(remaining)
        return True


def group_by_broker(located: Mapping[K, Node | KafkaError], *, can_batch: bool) -> list[tuple[Node, list[K]]]:
    """Group the keys by broker, one request each."""
    if not can_batch:
        return [(node, [key]) for key, node in located.items() if isinstance(node, Node)]
    by_node: dict[Node, list[K]] = {}
    for key, node in located.items():
        if isinstance(node, Node):
            by_node.setdefault(node, []).append(key)
    return list(by_node.items())


def results_by_key(query: AdminQuery[K, Any], keys: list[K], done: Future[Any]) -> dict[K, Any]:
    """Return the results of one response by key."""
    error = done.exception(0)
    if error is None:
        read = query.read(keys, done.result(0).message)
        missing_error = error_for(ErrorCode.UNKNOWN_SERVER_ERROR, "missing in the broker's response")
        return {key: read.get(key, missing_error) for key in keys}
    if isinstance(error, UnsupportedVersionError):
        error = error_for(ErrorCode.UNSUPPORTED_VERSION, str(error))
    elif isinstance(error, KafkaTimeoutError):
        error = error_for(ErrorCode.REQUEST_TIMED_OUT, str(error))
    if not isinstance(error, KafkaError):
        raise error
    return dict.fromkeys(keys, error)


def is_retriable(error: KafkaError) -> bool:
    """Return True if a retry may help. An unknown topic stays unknown, because every broker knows all topics."""
    return error.retriable and error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def is_broker_error(error: KafkaError | None) -> bool:
    """Return True for an error that a broker returned, in contrast to a lost connection or a missing response."""
    return error is not None and error.code not in (ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT)


def raise_first(failed: Mapping[Any, KafkaError]) -> None:
    """Raise the first error with a text that names every error and its keys. Return if there is none."""
    if not failed:
        return
    first = next(iter(failed.values()))
    if len(failed) == 1:
        raise first
    have_same_code = all(error.code == first.code for error in failed.values())
    keys_by_text: dict[str, list[str]] = {}
    for key, error in failed.items():
        name, text = str(key) if isinstance(key, tuple) else repr(key), error.reason if have_same_code else str(error)
        keys_by_text.setdefault(text, []).extend([] if name in text else [name])
    texts = [f"{few_of(keys)}: {text}" if keys else text for text, keys in keys_by_text.items()]
    raise error_for(first.code, few_of(texts, between="; "))


def connection_metrics(client_id: str, client: NetworkClient) -> ClientMetrics:
    """Return the metrics of an admin's connections.

    Holds no reference to the admin, so that it can be garbage collected.
    """
    from ottla.client.network.network_metrics import write_client

    builder = MetricsBuilder(client_id)
    write_client(builder, "admin-client", [client], client.clock.monotonic())
    return builder.build()


# Lookups.


def lookup_any_broker(driver: AdminApiDriver, keys: list[K], deadline: Deadline) -> dict[K, Node | KafkaError]:
    """Look up the least loaded broker."""
    driver.brokers(deadline)
    node = driver.client.run(driver.client.any_ready_node(deadline.at))
    if node is None:
        raise driver.timeout_error(deadline)
    return dict.fromkeys(keys, node)


def lookup_controller(driver: AdminApiDriver, keys: list[K], deadline: Deadline) -> dict[K, Node | KafkaError]:
    """Look up the controller, or any broker if the cluster names none."""
    nodes = driver.brokers(deadline)
    node = nodes.get(driver.metadata.cluster.controller_id) or next(iter(nodes.values()))
    return dict.fromkeys(keys, node)


def lookup_each_broker(driver: AdminApiDriver, keys: list[int], deadline: Deadline) -> dict[int, Node | KafkaError]:
    """Look up the brokers with these ids."""
    nodes = driver.brokers(deadline)
    unavailable = partial(error_for, ErrorCode.BROKER_NOT_AVAILABLE)
    return {key: nodes.get(key) or unavailable(f"there is no broker {key}") for key in keys}
