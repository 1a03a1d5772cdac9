"""The retry of partitions with a failed request: metadata is requested, and the request is repeated after the retry backoff."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.client.consumer.consumer_network_client import ConsumerNetworkClient
from ottla.client.consumer.subscription_state import SubscriptionState
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.model import TopicPartition


class PartitionRetry:
    """Delays requests for partitions after an error, because their leaders may have moved."""

    def __init__(
        self, client: ConsumerNetworkClient, subscriptions: SubscriptionState, backoff: ExponentialBackoff
    ) -> None:
        self._client = client
        self._subscriptions = subscriptions
        self._backoff = backoff

    def retry_later(self, tps: Iterable[TopicPartition]) -> None:
        """Request new metadata, and send no requests for these partitions for one retry backoff.

        The backoff does not grow.
        """
        self._client.metadata.request_update()
        self._subscriptions.postpone_requests(tps, self._client.client.clock.monotonic() + self._backoff.span(1))
