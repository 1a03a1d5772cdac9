"""The network clients of one consumer: the user's, and the one that the heartbeat's thread has to itself."""

from __future__ import annotations

from random import Random

from ottla.client.consumer.config import ConsumerConfig
from ottla.client.consumer.consumer_network_client import ConsumerNetworkClient
from ottla.client.metadata.metadata import Metadata
from ottla.client.network.connection_failures import FailureLog
from ottla.client.network.network_client import MAX_FRAME_BYTES, NetworkClient
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.clock import Clock

NEVER_MS = 1e15


class Networks:
    def __init__(self, config: ConsumerConfig, client_id: str, metadata: Metadata, clock: Clock) -> None:
        self._config = config
        self._client_id = client_id
        self._metadata = metadata
        self._clock = clock
        self._failure_log = FailureLog(client_id)

    def of_user(self) -> ConsumerNetworkClient:
        """For everything the user's thread does."""
        largest = min(2**31 - 1, max(MAX_FRAME_BYTES, 2 * self._config.fetch_max_bytes))
        return self._client(self._metadata, largest)

    def of_heartbeat(self) -> ConsumerNetworkClient:
        """For the group's protocol; asks about the cluster only when a connection was lost."""
        config = self._config
        metadata = Metadata(
            self._metadata.bootstrap,
            max_age_ms=NEVER_MS,
            backoff=ExponentialBackoff(config.retry_backoff_ms, config.retry_backoff_max_ms, Random()),
            allow_auto_topic_creation=False,
        )
        metadata.adopt(self._metadata.cluster, self._clock.monotonic())
        return self._client(metadata, MAX_FRAME_BYTES)

    def _client(self, metadata: Metadata, max_frame_bytes: int) -> ConsumerNetworkClient:
        client = NetworkClient(
            self._config,
            metadata,
            client_id=self._client_id,
            max_in_flight=100,
            max_frame_bytes=max_frame_bytes,
            clock=self._clock,
            failure_log=self._failure_log,
        )
        return ConsumerNetworkClient(client, request_timeout_ms=self._config.request_timeout_ms)
