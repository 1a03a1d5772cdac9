"""Find the broker that coordinates a group (FindCoordinator).

The request is sent by the next poll of the client. The state machine: unknown → lookup in flight → known, and back to
unknown when a request reports NOT_COORDINATOR or the connection is lost (`mark_unknown`). Failed lookups are retried
with backoff. Corresponds to the lookup in Java's AbstractCoordinator. Not thread-safe.
"""

from __future__ import annotations

import logging
from typing import Any

from ottla.client.consumer.consumer_network_client import ConsumerNetworkClient
from ottla.client.consumer.coordinator.coordinator_errors import coordinator_error, is_fatal
from ottla.client.metadata.coordinators import FIRST_OF_COORDINATORS, GROUP, LAST_VERSION_WITH_ONE_KEY, describe_node
from ottla.client.network.client_request import ClientResponse
from ottla.client.network.connection_states import SLOW_SECONDS
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.client.runtime.deadline import Deadline
from ottla.client.runtime.future import Future
from ottla.client.runtime.steps import Steps
from ottla.errors import ErrorCode, KafkaError, KafkaTimeoutError, name_of
from ottla.model import FOREVER, Node
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest


class CoordinatorFinder:
    """The coordinator of one group, if it is known."""

    def __init__(
        self, client: ConsumerNetworkClient, config: Any, backoff: ExponentialBackoff, log: logging.LoggerAdapter[Any]
    ) -> None:
        self.node: Node | None = None
        self._client = client
        self._config = config
        self._backoff = backoff
        self._log = log
        self._clock = client.client.clock
        self._lookup: Future[ClientResponse] | None = None
        self._was_known = False
        self._attempts = 0
        self._retry_at = -FOREVER
        self._failure: Exception | None = None

    def reset(self) -> None:
        """Forget the request in flight; its response may never be handled."""
        self._lookup, self._retry_at = None, -FOREVER

    def set_node(self, node: Node | None) -> None:
        """Start with the coordinator that another finder knows. If it is lost, it is looked up again."""
        if not self._was_known and node is not None:
            self._was_known, self.node = True, node

    def ensure_lookup(self, now: float) -> float:
        """Start a lookup unless the coordinator is known or a lookup is in flight.

        Return the seconds until the next call.

        Raises errors that a retry does not repair, such as GROUP_AUTHORIZATION_FAILED.
        """
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        if self.node is not None or self._lookup is not None:
            return FOREVER
        if now < self._retry_at:
            return self._retry_at - now
        network = self._client.client
        node = network.least_loaded_node(now)
        if node is None:
            self._retry_later(now)
            return self._retry_at - now
        if not network.ready(node, now):  # by the time it is ready, another broker may be the least loaded
            return min(network.time_to_slow(node, now), network.connection_delay(node.node_id, now) or SLOW_SECONDS)
        request = FindCoordinatorRequest(key=self._config.group_id or "", key_type=GROUP)
        self._lookup = self._client.send(node, request, max_version=LAST_VERSION_WITH_ONE_KEY)
        self._lookup.add_done_callback(self._handle)
        return FOREVER

    def await_node(self, deadline: Deadline, what: str, last_error: Exception | None = None) -> Steps[Node]:
        """Return the coordinator, looking it up while the caller waits.

        Raises KafkaTimeoutError, which begins with `what`.

        `last_error` is the last error that the coordinator returned.
        """
        while self.node is None:
            now = self._clock.monotonic()
            wait = self.ensure_lookup(now)
            if now >= deadline.at:
                raise self.timeout_error(deadline, what, last_error)
            yield min(wait, deadline.at - now)
        return self.node

    def timeout_error(self, deadline: Deadline, what: str, last_error: Exception | None = None) -> KafkaTimeoutError:
        """Return the error of a call that did not find the coordinator in time."""
        if not self._client.metadata.version:
            return self._client.client.unavailable_error(
                deadline.span * 1000, "default.api.timeout.ms, or the call's own"
            )
        if last_error is not None:
            return KafkaTimeoutError(f"{what} within {deadline.span:g} s: {last_error}")
        return KafkaTimeoutError(
            f"{what} within {deadline.span:g} s: the coordinator of group {self._config.group_id!r} did not answer; "
            f"{self._client.client.describe_trouble()}"
        )

    def mark_unknown(self, reason: object) -> None:
        """Forget the coordinator: it has moved or its connection was lost."""
        if self.node is not None:
            self._log.info(
                "Group coordinator lost node=%s reason=%s; it is looked up again",
                describe_node(self.node),
                reason,
            )
            self.node = None

    def _handle(self, done: Future[ClientResponse]) -> None:
        self._lookup = None
        now = self._clock.monotonic()
        error = done.exception(0)
        if error is not None:
            self._log.debug("FindCoordinator request failed error=%s", error)
            self._client.metadata.request_update()
            self._retry_later(now)
            if not isinstance(error, KafkaError | KafkaTimeoutError):
                self._failure = error
            return
        response = done.result(0).message
        if response.error_code == ErrorCode.NONE:
            self._attempts, self._was_known = 0, True
            self.node = Node(FIRST_OF_COORDINATORS - response.node_id, response.host, response.port)
            self._log.info("found the group coordinator %s", describe_node(self.node))
            return
        self._log.debug("Group coordinator lookup failed error=%s", name_of(response.error_code))
        if is_fatal(response.error_code):
            self._failure = coordinator_error(response.error_code, self._config, response.error_message)
        self._retry_later(now)

    def _retry_later(self, now: float) -> None:
        self._attempts += 1
        self._retry_at = now + self._backoff.span(self._attempts)
