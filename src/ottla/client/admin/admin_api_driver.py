"""Asks the right brokers about many keys at once, and again about those that may succeed later.

Any number of threads may use it, one call at a time. What is asked, whom, and what answers mean is said by a
`Question`; here are the connections, the rounds and the deadline.
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
from ottla.client.metadata.cluster import Cluster
from ottla.client.metadata.metadata import Metadata
from ottla.client.metrics.client_metrics import ClientMetrics, Sheet
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

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
Lookup = Callable[["AdminApiDriver", list[K], Deadline], Mapping[K, Node | KafkaError]]
"""Which broker to ask about each key."""
CLOSED = "the admin client is closed; make a new one"
TIMEOUT_SETTING = "default.api.timeout.ms, or the call's own timeout"


class Question(Struct, Generic[K, V], frozen=True):
    """What to ask about keys, and how to read the answer."""

    lookup: Lookup[K]
    request: Callable[[list[K]], Any]
    read: Callable[[list[K], Any], Mapping[K, V | KafkaError]]
    """What became of each key; of one that is left out, the broker said nothing."""
    together: bool = True
    """Whether one request may be about many keys."""
    max_version: int | None = None


class AdminApiDriver:
    """Connections to a cluster, for questions."""

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
        self._take_metrics = partial(metrics_of, client_id)
        if config.enable_metrics_push:
            network.telemetry.begin(self._take_metrics)
        self._lock = threading.Lock()
        self._closed = False

    def ask(
        self, question: Question[K, V], keys: Iterable[K], timeout: float | None
    ) -> tuple[dict[K, V], dict[K, KafkaError]]:
        """What was found about each key, and what went wrong with the others; KafkaTimeoutError where nobody answers."""
        found: dict[K, V] = {}
        failed: dict[K, KafkaError] = {}
        with self.turn():
            deadline = Deadline.after(self.span(timeout), self.clock.monotonic())
            left, attempts = dict.fromkeys(keys), 0
            while left:
                try:
                    if not all(was_told(failed[key]) for key in left if key in failed):
                        self._learn_anew(deadline)
                    outcomes = self.round(question, list(left), deadline)
                except KafkaTimeoutError:
                    if not all(was_told(failed.get(key)) for key in left):
                        raise
                    break  # what was said the last time tells more than that no time was left to ask again
                for key, outcome in outcomes.items():
                    failed.pop(key, None)
                    if isinstance(outcome, KafkaError):
                        failed[key] = outcome
                        if may_pass(outcome):
                            continue
                    else:
                        found[key] = outcome
                    left.pop(key, None)
                attempts += 1
                if left and not self._back_off(attempts, deadline):
                    break
        return found, failed

    def ask_each_broker(
        self, request: Any, read: Callable[[list[int], Any], Mapping[int, V | KafkaError]], timeout: float | None
    ) -> dict[int, V]:
        """What every broker says to the same request; the first KafkaError where one of them cannot."""
        question: Question[int, V] = Question(each_broker, lambda _: request, read, together=False)
        with self.turn():
            brokers = list(self.brokers(Deadline.after(self.span(timeout), self.clock.monotonic())))
        found, failed = self.ask(question, brokers, timeout)
        raise_first(failed)
        return found

    def ask_one(
        self,
        lookup: Lookup[str],
        request: Any,
        what: str,
        timeout: float | None,
        meanings: Mapping[int, str] = MappingProxyType({}),
    ) -> Any:
        """The answer to a request as a whole. Its error is raised, with the broker's own words, else with what the code means."""

        def read(_: list[str], message: Any) -> dict[str, Any]:
            if not (code := message.error_code):
                return {what: message}
            return {what: error_for(code, getattr(message, "error_message", None) or meanings.get(code) or what)}

        question: Question[str, Any] = Question(lookup, lambda _: request, read)
        found, failed = self.ask(question, [what], timeout)
        raise_first(failed)
        return found[what]

    def round(self, question: Question[K, V], keys: list[K], deadline: Deadline) -> dict[K, V | KafkaError]:
        """Ask about each key once, all brokers at the same time."""
        located = question.lookup(self, keys, deadline)
        outcomes: dict[K, V | KafkaError] = {
            key: where for key, where in located.items() if isinstance(where, KafkaError)
        }
        asked = []
        for node, mine in shared_out(located, together=question.together):
            request = question.request(mine)
            asked.append((mine, self.client.send(node, request, max_version=question.max_version)))
        for mine, future in asked:
            if not self.client.poll_until(future, deadline.at):
                raise self.late(deadline)
            answered: Mapping[K, V | KafkaError] = outcomes_of(question, mine, future)
            outcomes.update(answered)
        return outcomes

    def brokers(self, deadline: Deadline) -> Mapping[int, Node]:
        """All brokers that are known, by id."""
        while self.metadata.version == 0:
            if not self.client.await_metadata(deadline.at):
                raise self.late(deadline)
        return self.metadata.cluster.nodes

    def cluster_now(self, timeout: float | None) -> Cluster:
        """All brokers and who is controller, asked for anew."""
        deadline = Deadline.after(self.span(timeout), self.clock.monotonic())
        with self.turn():
            self._learn_anew(deadline)
            return self.metadata.cluster

    @contextmanager
    def turn(self) -> Iterator[None]:
        """One thread's turn; IllegalStateError where the client is closed."""
        with self._lock:
            if self._closed:
                raise IllegalStateError(CLOSED)
            yield

    def metrics(self) -> ClientMetrics:
        """What is counted of the connections; from any thread, without waiting for a turn."""
        return self._take_metrics(self.client.client)

    def client_instance_id(self, timeout: float | None) -> UUID:
        """The id under which that is pushed."""
        network = self.client.client
        with self.turn():
            return self.client.run(network.telemetry.client_instance_id(network, self.span(timeout)))

    @property
    def closed(self) -> bool:
        """Whether it is of no more use."""
        return self._closed

    def close(self, timeout: float | None) -> None:
        """Close all connections; a call of another thread ends with WakeupError. May be called again."""
        span = -1 if timeout is None else checked_timeout(timeout)
        self._closed = True
        self.client.wakeup()
        if not self._lock.acquire(timeout=span):
            raise KafkaTimeoutError(f"a call of another thread did not end within close(timeout={span:g})")
        network = self.client.client
        try:
            with closing(self.client):
                self.client.run(network.telemetry.terminate(network), wakeable=False)
        finally:
            self._lock.release()

    def late(self, deadline: Deadline) -> KafkaTimeoutError:
        """The error of a call that nobody answered."""
        return self.client.client.unavailable(deadline.span * 1000, TIMEOUT_SETTING)

    def span(self, timeout: float | None) -> float:
        """Seconds that a call may take."""
        return self.config.default_api_timeout_ms / 1000 if timeout is None else checked_timeout(timeout)

    def timeout_ms(self, timeout: float | None) -> int:
        """How long a broker may take for its part."""
        return min(self.config.request_timeout_ms, int(self.span(timeout) * 1000))

    def _learn_anew(self, deadline: Deadline) -> None:
        """Who is there, and whom to ask: one who did not answer may be the controller no more, or stand still."""
        known = self.metadata.request_update()
        while self.metadata.version <= known:
            if not self.client.await_metadata(deadline.at):
                raise self.late(deadline)

    def _back_off(self, attempts: int, deadline: Deadline) -> bool:
        """Wait before the next round; False when there is no time for one."""
        now = self.clock.monotonic()
        if now >= deadline.at:
            return False
        until = min(deadline.at, now + self.backoff.span(attempts))
        self.metadata.request_update()
        while (rest := until - self.clock.monotonic()) > 0:
            self.client.poll(rest)
        return True


def shared_out(located: Mapping[K, Node | KafkaError], *, together: bool) -> list[tuple[Node, list[K]]]:
    """The keys of each request with the broker it goes to."""
    if not together:
        return [(node, [key]) for key, node in located.items() if isinstance(node, Node)]
    by_node: dict[Node, list[K]] = {}
    for key, node in located.items():
        if isinstance(node, Node):
            by_node.setdefault(node, []).append(key)
    return list(by_node.items())


def outcomes_of(question: Question[K, Any], keys: list[K], done: Future[Any]) -> dict[K, Any]:
    """What one answer says of the keys it is about."""
    error = done.exception(0)
    if error is None:
        read = question.read(keys, done.result(0).message)
        silence = error_for(ErrorCode.UNKNOWN_SERVER_ERROR, "the broker left it out of its answer")
        return {key: read.get(key, silence) for key in keys}
    if isinstance(error, UnsupportedVersionError):
        error = error_for(ErrorCode.UNSUPPORTED_VERSION, str(error))
    elif isinstance(error, KafkaTimeoutError):
        error = error_for(ErrorCode.REQUEST_TIMED_OUT, str(error))
    if not isinstance(error, KafkaError):
        raise error
    return dict.fromkeys(keys, error)


def may_pass(error: KafkaError) -> bool:
    """Whether asking again may help; whoever is asked knows all topics it is to know, so an unknown one stays so."""
    return error.retriable and error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def was_told(error: KafkaError | None) -> bool:
    """Whether it is a broker who said so, and not we, of a connection or an answer that did not come."""
    return error is not None and error.code not in (ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT)


def raise_first(failed: Mapping[Any, KafkaError]) -> None:
    """Raise the first error, its text naming all of them, each once with whom it struck; nothing when there is none."""
    if not failed:
        return
    first = next(iter(failed.values()))
    if len(failed) == 1:
        raise first
    alike = all(error.code == first.code for error in failed.values())
    struck: dict[str, list[str]] = {}
    for key, error in failed.items():
        name, text = str(key) if isinstance(key, tuple) else repr(key), error.reason if alike else str(error)
        struck.setdefault(text, []).extend([] if name in text else [name])
    told = [f"{few_of(keys)}: {text}" if keys else text for text, keys in struck.items()]
    raise error_for(first.code, few_of(told, between="; "))


def metrics_of(client_id: str, client: NetworkClient) -> ClientMetrics:
    """The numbers of an admin's connections; knows nothing of the admin, which must be free to be forgotten."""
    from ottla.client.network.network_metrics import write_client

    sheet = Sheet(client_id)
    write_client(sheet, "admin-client", [client], client.clock.monotonic())
    return sheet.whole()


# Whom to ask.


def any_broker(driver: AdminApiDriver, keys: list[K], deadline: Deadline) -> dict[K, Node | KafkaError]:
    """Whoever is least busy."""
    driver.brokers(deadline)
    node = driver.client.run(driver.client.any_ready_node(deadline.at))
    if node is None:
        raise driver.late(deadline)
    return dict.fromkeys(keys, node)


def controller(driver: AdminApiDriver, keys: list[K], deadline: Deadline) -> dict[K, Node | KafkaError]:
    """The controller, or with a cluster that names none, any broker."""
    nodes = driver.brokers(deadline)
    node = nodes.get(driver.metadata.cluster.controller_id) or next(iter(nodes.values()))
    return dict.fromkeys(keys, node)


def each_broker(driver: AdminApiDriver, keys: list[int], deadline: Deadline) -> dict[int, Node | KafkaError]:
    """The brokers that the keys are the ids of."""
    nodes = driver.brokers(deadline)
    gone = partial(error_for, ErrorCode.BROKER_NOT_AVAILABLE)
    return {key: nodes.get(key) or gone(f"there is no broker {key}") for key in keys}
