"""Look up the committed offsets of a group (OffsetFetch). Everything runs in the user's thread."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any

from ottla.client.consumer.config import ConsumerConfig
from ottla.client.consumer.consumer_network_client import ConsumerNetworkClient
from ottla.client.consumer.coordinator.coordinator_errors import is_fatal
from ottla.client.consumer.coordinator.finder import CoordinatorFinder
from ottla.client.consumer.coordinator.generation import ConsumerGroupMetadata
from ottla.client.consumer.offsets import committed_request
from ottla.client.consumer.offsets.commits import LOST_COORDINATOR, is_retriable
from ottla.client.consumer.subscription_state import SubscriptionState, TopicPartitionState
from ottla.client.network.client_request import ClientResponse
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.client.runtime.deadline import Deadline
from ottla.client.runtime.future import Future
from ottla.client.runtime.steps import Steps
from ottla.errors import ErrorCode, error_for
from ottla.model import FOREVER, Node, OffsetAndMetadata, TopicPartition

NO_OFFSET = -1
Committed = dict[TopicPartition, OffsetAndMetadata | None]


class ConsumerCommittedOffsets:
    """Fetches committed offsets: `refresh` in the background of polls, `fetch` while the user waits."""

    def __init__(
        self,
        config: ConsumerConfig,
        client: ConsumerNetworkClient,
        finder: CoordinatorFinder,
        subscriptions: SubscriptionState,
        backoff: ExponentialBackoff,
        group_metadata: Callable[[], ConsumerGroupMetadata],
        log: Any,
    ) -> None:
        self._config = config
        self._client = client
        self._finder = finder
        self._subscriptions = subscriptions
        self._backoff = backoff
        self._group_metadata = group_metadata
        self._stable = config.isolation_number == 1
        self._log = log
        self._clock = client.client.clock
        self._in_flight: Future[Committed] | None = None
        self._attempts = 0
        self._failure: Exception | None = None

    def reset(self) -> None:
        """Forget the request in flight. Its connection was closed, so there may be no response."""
        self._in_flight = None

    def refresh(self) -> float:
        """Request the committed offsets of newly assigned partitions.

        Return the seconds until the next call. Raises an error of the last request that a retry does not repair.
        """
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        now = self._clock.monotonic()
        if self._in_flight is not None:
            return FOREVER
        wanted = self._subscriptions.find_awaiting_committed(now)
        if not wanted:
            return FOREVER
        node = self._finder.node
        if node is None:
            return self._finder.ensure_lookup(now)
        self._in_flight = self._send(node, wanted)
        states = {tp: self._subscriptions.state(tp) for tp in wanted}
        self._in_flight.add_done_callback(partial(self._apply_offsets, states))
        return FOREVER

    def fetch(self, partitions: Collection[TopicPartition], timeout: float) -> Steps[Committed]:
        """Return the committed offset of each partition, or None.

        Retriable errors are retried for up to `timeout` seconds.
        """
        deadline = Deadline.after(timeout, self._clock.monotonic())
        what = "the committed offsets were not found"
        attempts = 0
        error: Exception | None = None
        while partitions:
            node = yield from self._finder.await_node(deadline, what, error)
            future = self._send(node, partitions)
            if not (yield from self._client.wait_until(future.done, deadline.at)):
                raise self._finder.timeout_error(deadline, what, error)
            error = future.exception(0)
            if error is None:
                return future.result(0)
            if not self._can_retry(error):
                raise error
            attempts += 1
            yield from self._client.wait_for_time(
                min(deadline.at, self._clock.monotonic() + self._backoff.span(attempts))
            )
        return {}

    def _send(self, node: Node, partitions: Iterable[TopicPartition]) -> Future[Committed]:
        topics: dict[str, list[int]] = {}
        for tp in partitions:
            topics.setdefault(tp.topic, []).append(tp.partition)
        done: Future[Committed] = Future()
        if self._config.group_protocol == "consumer":
            group_metadata = self._group_metadata()
            request = committed_request.member_request(
                group_metadata, topics, self._client.metadata.cluster, self._stable
            )
        else:
            request = committed_request.group_request(self._config.group_id or "", topics, self._stable)
        sent = self._client.send(node, request, max_version=committed_request.max_request_version(request))
        sent.add_done_callback(partial(self._handle, done))
        return done

    def _handle(self, done: Future[Committed], sent: Future[ClientResponse]) -> None:
        error = sent.exception(0)
        if error is not None:
            self._finder.mark_unknown(error)
            done.set_exception(error)
            return
        code, parts = committed_request.read_response(sent.result(0).message, self._client.metadata.cluster)
        if code in LOST_COORDINATOR:
            self._finder.mark_unknown(ErrorCode(code).name)
        if code:
            done.set_exception(error_for(code, f"the committed offsets of group {self._config.group_id!r}"))
            return
        done.set_result({tp: parse_offset(part) for tp, part in parts.items()})

    def _apply_offsets(self, wanted: Mapping[TopicPartition, TopicPartitionState], done: Future[Committed]) -> None:
        self._in_flight = None
        error = done.exception(0)
        if error is None:
            self._attempts = 0
            committed = done.result(0)
            for tp, state in wanted.items():
                # If the partition was revoked and assigned again after the request, another member may have committed
                # in between. The new state then requests the offset again.
                if self._subscriptions.state_or_none(tp) is state:
                    self._set_position(tp, committed.get(tp))
            return
        self._attempts += 1
        self._subscriptions.postpone_requests(wanted, self._clock.monotonic() + self._backoff.span(self._attempts))
        self._log.debug("Offset fetch failed error=%s", error)
        if not self._can_retry(error) and is_fatal(getattr(error, "code", ErrorCode.NETWORK_EXCEPTION)):
            self._failure = error

    def _can_retry(self, error: Exception) -> bool:
        """Return True if the request is retried.

        A member that the coordinator has removed retries too: its heartbeat fails, and it joins again with a new epoch.
        """
        is_removed = (
            self._config.group_protocol == "consumer" and getattr(error, "code", 0) == ErrorCode.UNKNOWN_MEMBER_ID
        )
        return is_removed or is_retriable(error)

    def _set_position(self, tp: TopicPartition, committed: OffsetAndMetadata | None) -> None:
        if committed is None:
            self._log.info("No committed offset partition=%s", tp)
        else:
            self._log.info("Starting at the committed offset partition=%s offset=%d", tp, committed.offset)
        self._subscriptions.start_at(tp, committed)


def parse_offset(part: Any) -> OffsetAndMetadata | None:
    if part.committed_offset == NO_OFFSET:
        return None
    return OffsetAndMetadata(part.committed_offset, part.metadata or "", part.committed_leader_epoch)
