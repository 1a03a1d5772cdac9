"""The admin client: what users call.

Any number of threads may use it, one call at a time; each call waits for its answer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from random import Random
from types import TracebackType
from typing import Any

from ottla.client.admin.config import read_admin_settings
from ottla.client.admin.topic import NewTopic, TopicDescription, TopicListing
from ottla.client.arguments import checked_partition, checked_topic, checked_topics
from ottla.client.backoff import ExponentialBackoff
from ottla.client.bootstrap import bootstrap_nodes
from ottla.client.client_id import next_client_id
from ottla.client.cluster import TopicInfo
from ottla.client.consumer.consumer_network_client import ConsumerNetworkClient
from ottla.client.consumer.offset_fetcher import OffsetFetcher
from ottla.client.consumer.subscription_state import SubscriptionState
from ottla.client.consumer.topic_metadata_fetcher import TopicMetadataFetcher
from ottla.client.deadline import Deadline
from ottla.client.metadata import Metadata
from ottla.client.network_client import NetworkClient
from ottla.clock import SystemClock
from ottla.errors import ErrorCode, IllegalStateError, KafkaError, KafkaTimeoutError, error_for
from ottla.model import Node, OffsetAndTimestamp, TopicPartition
from ottla.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState


class Admin:
    """Creates, deletes, lists and describes topics.

    Settings come as Kafka's dotted names, as keywords, or both. Close it, or use it in a `with` statement.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, /, **keywords: Any) -> None:
        self.config = read_admin_settings(config, keywords)
        self.client_id = self.config.client_id or next_client_id("adminclient")
        self._clock = SystemClock()
        self._lock = threading.Lock()
        self._closed = False
        random = Random()
        self._backoff = ExponentialBackoff(self.config.retry_backoff_ms, self.config.retry_backoff_max_ms, random)
        self._metadata = Metadata(
            bootstrap_nodes(self.config.bootstrap_servers),
            max_age_ms=self.config.metadata_max_age_ms,
            backoff=self._backoff,
            allow_auto_topic_creation=False,
        )
        network = NetworkClient(self.config, self._metadata, client_id=self.client_id, clock=self._clock, random=random)
        timeout_ms = self.config.request_timeout_ms
        self._client = ConsumerNetworkClient(network, request_timeout_ms=timeout_ms)
        self._topics = TopicMetadataFetcher(self._client, self._backoff, allow_auto_topic_creation=False)
        self._offsets = OffsetFetcher(
            self._client, SubscriptionState(None), self._backoff, request_timeout_ms=timeout_ms
        )

    def create_topics(
        self, topics: Iterable[NewTopic], timeout: float | None = None, *, validate_only: bool = False
    ) -> None:
        """Create topics, or only check whether that would succeed.

        Each is created or not by itself; afterwards the first error is raised, with all of them in its text.
        """
        wanted = {topic.name: creatable(topic) for topic in checked_new_topics(topics)}
        self._change(
            wanted,
            lambda left: CreateTopicsRequest(
                topics=list(left.values()), timeout_ms=self._timeout_ms(timeout), validate_only=validate_only
            ),
            lambda message: message.topics,
            timeout,
        )

    def delete_topics(self, names: Iterable[str], timeout: float | None = None) -> None:
        """Delete topics and all their records. Errors as in `create_topics`."""
        wanted = {name: DeleteTopicState(name=name) for name in checked_topics(names)}
        self._change(
            wanted,
            lambda left: DeleteTopicsRequest(
                topics=list(left.values()), topic_names=list(left), timeout_ms=self._timeout_ms(timeout)
            ),
            lambda message: message.responses,
            timeout,
        )

    def list_topics(self, timeout: float | None = None, *, internal: bool = False) -> dict[str, TopicListing]:
        """All topics by name; Kafka's own only if `internal`."""
        found = self._fetch_topics(None, timeout)
        return {
            name: TopicListing(name, info.topic_id, info.internal)
            for name, info in sorted(found.items())
            if internal or not info.internal
        }

    def describe_topics(self, names: Iterable[str], timeout: float | None = None) -> dict[str, TopicDescription]:
        """The named topics with their partitions; an unknown one is an error."""
        wanted = list(dict.fromkeys(checked_topics(names)))
        found = self._fetch_topics(wanted, timeout)
        missing = [name for name in wanted if name not in found]
        if missing:
            names_of_missing = ", ".join(map(repr, missing))
            raise error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {names_of_missing}")
        return {name: TopicDescription(*found[name]) for name in wanted}

    def list_offsets(
        self, timestamps: Mapping[TopicPartition, int], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """The offset of each partition at a time in ms, or at EARLIEST, LATEST, MAX_TIMESTAMP of `ottla.model`.

        Offset -1 where there is no record at or after the time.
        """
        asked = {checked_partition(tp): timestamp for tp, timestamp in timestamps.items()}
        with self._lock:
            self._check_open()
            return self._offsets.fetch_offsets(asked, self._span(timeout))

    def close(self, timeout: float | None = None) -> None:
        """Close all connections; a call of another thread ends with WakeupError. May be called again."""
        self._closed = True
        self._client.wakeup()
        if not self._lock.acquire(timeout=-1 if timeout is None else timeout):
            raise KafkaTimeoutError(f"a call of another thread did not end within close(timeout={timeout:g})")
        try:
            self._client.close()
        finally:
            self._lock.release()

    def __enter__(self) -> Admin:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _fetch_topics(self, names: list[str] | None, timeout: float | None) -> dict[str, TopicInfo]:
        with self._lock:
            self._check_open()
            return self._topics.topics(names, self._span(timeout))

    def _change(
        self,
        wanted: dict[str, Any],
        request: Callable[[dict[str, Any]], Any],
        results: Callable[[Any], Iterable[Any]],
        timeout: float | None,
    ) -> None:
        """Have the controller change topics; what may succeed later is asked again until the time is up."""
        failed: dict[str, KafkaError] = {}
        with self._lock:
            self._check_open()
            deadline = Deadline.after(self._span(timeout), self._clock.monotonic())
            left, attempts = dict(wanted), 0
            while left:
                for name, error in self._ask_controller(request(left), results, left, deadline).items():
                    failed.pop(name, None)
                    if error is not None:
                        failed[name] = error
                    if error is None or not may_pass(error):
                        left.pop(name, None)
                attempts += 1
                if left:
                    self._back_off(attempts, {name: failed[name] for name in left if name in failed}, deadline)
        raise_first({name: failed[name] for name in wanted if name in failed})

    def _ask_controller(
        self, request: Any, results: Callable[[Any], Iterable[Any]], left: Iterable[str], deadline: Deadline
    ) -> dict[str, KafkaError | None]:
        """One round: what became of each topic."""
        future = self._client.send(self._controller(deadline), request)
        if not self._client.poll_until(future, deadline.at):
            raise self._late(deadline)
        error = future.exception(0)
        if isinstance(error, KafkaError) and error.retriable:
            return dict.fromkeys(left, error)
        answers = results(future.result(0).message)
        return {
            answer.name: error_for(answer.error_code, answer.error_message or f"topic {answer.name!r}")
            if answer.error_code
            else None
            for answer in answers
        }

    def _back_off(self, attempts: int, failed: Mapping[str, KafkaError], deadline: Deadline) -> None:
        """Wait before the next round; raises when there is no time for one."""
        now = self._clock.monotonic()
        if now >= deadline.at:
            raise_first(failed)
            raise self._late(deadline)
        until = min(deadline.at, now + self._backoff.span(attempts))
        self._metadata.request_update()
        while (rest := until - self._clock.monotonic()) > 0:
            self._client.poll(rest)

    def _controller(self, deadline: Deadline) -> Node:
        """The controller, or with a cluster that names none, any broker."""
        while self._metadata.version == 0:
            if not self._client.await_metadata(deadline.at):
                raise self._late(deadline)
        cluster = self._metadata.cluster
        return cluster.nodes.get(cluster.controller_id) or next(iter(cluster.nodes.values()))

    def _late(self, deadline: Deadline) -> KafkaTimeoutError:
        setting = "default.api.timeout.ms, or the call's own timeout"
        return self._client.client.unavailable(deadline.span * 1000, setting)

    def _span(self, timeout: float | None) -> float:
        return self.config.default_api_timeout_ms / 1000 if timeout is None else timeout

    def _timeout_ms(self, timeout: float | None) -> int:
        return min(self.config.request_timeout_ms, int(self._span(timeout) * 1000))

    def _check_open(self) -> None:
        if self._closed:
            raise IllegalStateError("the admin client is closed; make a new one")


def checked_new_topics(topics: Iterable[Any]) -> list[NewTopic]:
    """What to create; a mere name lacks its partitions, and one topic alone is no list."""
    if isinstance(topics, NewTopic | str):
        raise TypeError(f"{topics!r} is no list of topics: write [NewTopic('flights', num_partitions=6)]")
    wanted = list(topics)
    for topic in wanted:
        if not isinstance(topic, NewTopic):
            raise TypeError(f"{topic!r} is no NewTopic: write NewTopic('flights', num_partitions=6)")
        checked_topic(topic.name)
    return wanted


def creatable(topic: NewTopic) -> CreatableTopic:
    """A new topic as it travels."""
    return CreatableTopic(
        name=topic.name,
        num_partitions=-1 if topic.replica_assignments else topic.num_partitions,
        replication_factor=-1 if topic.replica_assignments else topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in topic.replica_assignments.items()
        ],
        configs=[CreatableTopicConfig(name=name, value=str(value)) for name, value in topic.configs.items()],
    )


def may_pass(error: KafkaError) -> bool:
    """Whether asking the controller again may help; it knows all topics, so an unknown one stays so."""
    return error.retriable and error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def raise_first(failed: Mapping[str, KafkaError]) -> None:
    """Raise the first error, its text naming all of them; nothing when there is none."""
    if not failed:
        return
    first = next(iter(failed.values()))
    if len(failed) == 1:
        raise first
    raise error_for(first.code, "; ".join(f"{name!r}: {error}" for name, error in failed.items()))
