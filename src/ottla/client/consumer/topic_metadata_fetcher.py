"""Request metadata of topics outside the assignment."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.client.consumer.consumer_network_client import ConsumerNetworkClient
from ottla.client.metadata.metadata import build_cluster
from ottla.client.metadata.metadata_snapshot import KnownTopic, MetadataSnapshot
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.client.runtime.deadline import Deadline
from ottla.client.runtime.steps import Steps
from ottla.errors import ErrorCode, KafkaError, KafkaTimeoutError, error_for, topic_asked
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic


class TopicMetadataFetcher:
    """Requests metadata from any broker and retries temporary errors."""

    def __init__(
        self, client: ConsumerNetworkClient, retry_backoff: ExponentialBackoff, *, allow_auto_topic_creation: bool
    ) -> None:
        self._client = client
        self._retry_backoff = retry_backoff
        self._allow_auto_topic_creation = allow_auto_topic_creation
        self._clock = client.client.clock

    def fetch_topics(self, names: Iterable[str] | None, timeout: float) -> Steps[dict[str, KnownTopic]]:
        """Return these topics, or all. Topics that do not exist are omitted."""
        asked = None if names is None else [MetadataRequestTopic(name=name) for name in names]
        request = MetadataRequest(
            topics=asked, allow_auto_topic_creation=asked is not None and self._allow_auto_topic_creation
        )
        deadline = Deadline.after(timeout, self._clock.monotonic())
        attempts = 0
        while True:
            cluster = yield from self._send_request(request, deadline)
            if cluster is not None and ErrorCode.LEADER_NOT_AVAILABLE not in cluster.errors.values():
                break
            attempts += 1
            yield from self._client.wait_for_time(
                min(deadline.at, self._clock.monotonic() + self._retry_backoff.span(attempts))
            )
        for name, code in cluster.errors.items():
            if code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise error_for(code, topic_asked(code, name))
        return dict(cluster.topics)

    def _send_request(self, request: MetadataRequest, deadline: Deadline) -> Steps[MetadataSnapshot | None]:
        """Send one request. Return None if the response was lost; raise if there is no more time."""
        client = self._client
        node = yield from client.any_ready_node(deadline.at)
        if node is None:
            raise self._timeout_error(deadline)
        future = client.send(node, request)
        if not (yield from client.wait_until(future.done, deadline.at)):
            raise self._timeout_error(deadline)
        error = future.exception(0)
        if error is None:
            return build_cluster(future.result(0).message, MetadataSnapshot())
        if isinstance(error, KafkaError) and error.retriable and self._clock.monotonic() < deadline.at:
            return None
        raise self._timeout_error(deadline) if isinstance(error, KafkaError | KafkaTimeoutError) else error

    def _timeout_error(self, deadline: Deadline) -> KafkaTimeoutError:
        setting = "default.api.timeout.ms, or the call's own timeout"
        return self._client.client.unavailable_error(deadline.span * 1000, setting)
