"""Finds the broker that coordinates a group.

A question goes out with the next poll of the client. For one thread.
"""

from __future__ import annotations

import logging
from typing import Any

from ottla.client.consumer.consumer_network_client import ConsumerNetworkClient
from ottla.client.consumer.coordinator.refusals import failure_of, is_fatal
from ottla.client.metadata.coordinators import GROUP, LAST_VERSION_WITH_ONE_KEY, described
from ottla.client.network.client_request import ClientResponse
from ottla.client.network.connection_states import SLOW_SECONDS
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.client.runtime.deadline import Deadline
from ottla.client.runtime.future import Future
from ottla.client.runtime.steps import Steps
from ottla.errors import ErrorCode, KafkaError, KafkaTimeoutError, name_of
from ottla.model import FOREVER, Node
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest

FIRST_OF_COORDINATORS = 2**31 - 1
"""A coordinator's node id counts down from here, so that it gets a connection of its own: on that of the fetches its
answers would wait behind the broker's waiting for data. The Java client's trick."""


class CoordinatorFinder:
    """The coordinator as far as it is known."""

    def __init__(
        self, client: ConsumerNetworkClient, config: Any, backoff: ExponentialBackoff, log: logging.LoggerAdapter[Any]
    ) -> None:
        self.node: Node | None = None
        self._client = client
        self._config = config
        self._backoff = backoff
        self._log = log
        self._clock = client.client.clock
        self._asking: Future[ClientResponse] | None = None
        self._was_known = False
        self._attempts = 0
        self._retry_at = -FOREVER
        self._failure: Exception | None = None

    def reset(self) -> None:
        """Forget the request under way, whose answer may never be handled."""
        self._asking, self._retry_at = None, -FOREVER

    def adopt(self, node: Node | None) -> None:
        """Begin with what another finder knows; what was lost since is looked up anew."""
        if not self._was_known and node is not None:
            self._was_known, self.node = True, node

    def ensure(self, now: float) -> float:
        """Ask, unless it is known or asked for; returns the seconds after which to look again.

        Raises what makes asking useless, such as a group one may not see.
        """
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        if self.node is not None or self._asking is not None:
            return FOREVER
        if now < self._retry_at:
            return self._retry_at - now
        network = self._client.client
        node = network.least_loaded_node(now)
        if node is None:
            self._try_later(now)
            return self._retry_at - now
        if not network.ready(node, now):  # and in a second another one may be the least loaded
            return min(network.time_to_slow(node, now), network.delay(node.node_id, now) or SLOW_SECONDS)
        request = FindCoordinatorRequest(key=self._config.group_id or "", key_type=GROUP)
        self._asking = self._client.send(node, request, max_version=LAST_VERSION_WITH_ONE_KEY)
        self._asking.add_done_callback(self._handle)
        return FOREVER

    def await_node(self, deadline: Deadline, what: str, refused: Exception | None = None) -> Steps[Node]:
        """The coordinator, looked up while the caller waits; KafkaTimeoutError names what could not be done.

        `refused` is what it said when it was asked last.
        """
        while self.node is None:
            now = self._clock.monotonic()
            wait = self.ensure(now)
            if now >= deadline.at:
                raise self.late(deadline, what, refused)
            yield min(wait, deadline.at - now)
        return self.node

    def late(self, deadline: Deadline, what: str, refused: Exception | None = None) -> KafkaTimeoutError:
        """The error of somebody who has waited for the coordinator in vain."""
        if not self._client.metadata.version:
            return self._client.client.unavailable(deadline.span * 1000, "default.api.timeout.ms, or the call's own")
        if refused is not None:
            return KafkaTimeoutError(f"{what} within {deadline.span:g} s: {refused}")
        return KafkaTimeoutError(
            f"{what} within {deadline.span:g} s: the coordinator of group {self._config.group_id!r} did not answer; "
            f"{self._client.client.trouble()}"
        )

    def mark_unknown(self, why: object) -> None:
        """It is not the coordinator any longer, or is gone."""
        if self.node is not None:
            self._log.info(
                "the coordinator %s is lost (%s): looking for it anew",
                described(self.node),
                why,
            )
            self.node = None

    def _handle(self, done: Future[ClientResponse]) -> None:
        self._asking = None
        now = self._clock.monotonic()
        error = done.exception(0)
        if error is not None:
            self._log.debug("FindCoordinator request failed: %s", error)
            self._client.metadata.request_update()
            self._try_later(now)
            if not isinstance(error, KafkaError | KafkaTimeoutError):
                self._failure = error
            return
        answer = done.result(0).message
        if answer.error_code == ErrorCode.NONE:
            self._attempts, self._was_known = 0, True
            self.node = Node(FIRST_OF_COORDINATORS - answer.node_id, answer.host, answer.port)
            self._log.info("Discovered group coordinator %s", described(self.node))
            return
        self._log.debug("Group coordinator lookup failed: %s", name_of(answer.error_code))
        if is_fatal(answer.error_code):
            self._failure = failure_of(answer.error_code, self._config, answer.error_message)
        self._try_later(now)

    def _try_later(self, now: float) -> None:
        self._attempts += 1
        self._retry_at = now + self._backoff.span(self._attempts)
