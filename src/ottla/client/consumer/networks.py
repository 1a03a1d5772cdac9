"""Create the network clients of one consumer: that of the user's thread, and that of the heartbeat thread."""

from __future__ import annotations

from random import Random

from ottla.client.config.common_config import CommonConfig
from ottla.client.consumer.consumer_network_client import ConsumerNetworkClient
from ottla.client.metadata.metadata import Metadata
from ottla.client.network.connection_failures import FailureLog
from ottla.client.network.network_client import MAX_FRAME_BYTES, NetworkClient
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.clock import Clock

NEVER_MS = 1e15


class Networks:
    def __init__(
        self, config: CommonConfig, client_id: str, metadata: Metadata, clock: Clock, *, fetch_max_bytes: int
    ) -> None:
        self._config = config
        self._fetch_max_bytes = fetch_max_bytes
        self._client_id = client_id
        self._metadata = metadata
        self._clock = clock
        self._failure_log = FailureLog(client_id)

    def make_user_client(self) -> ConsumerNetworkClient:
        """Create the client of the user's thread."""
        largest = min(2**31 - 1, max(MAX_FRAME_BYTES, 2 * self._fetch_max_bytes))
        return self._make_client(self._metadata, largest)

    def make_heartbeat_client(self) -> ConsumerNetworkClient:
        """Create the client of the group protocol. It requests metadata only after a lost connection."""
        config = self._config
        metadata = Metadata(
            self._metadata.bootstrap,
            max_age_ms=NEVER_MS,
            backoff=ExponentialBackoff(config.retry_backoff_ms, config.retry_backoff_max_ms, Random()),
            allow_auto_topic_creation=False,
        )
        metadata.adopt_cluster(self._metadata.cluster, self._clock.monotonic())
        return self._make_client(metadata, MAX_FRAME_BYTES)

    def _make_client(self, metadata: Metadata, max_frame_bytes: int) -> ConsumerNetworkClient:
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
