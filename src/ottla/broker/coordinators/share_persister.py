"""Sends operations on the states of share groups to the share coordinator, which may be this broker (KIP-932's persister).

    operation ──► the coordinator of its key ──┬─ this broker: ShareCoordinator
                                               └─ another one: one request at a time to it, with all that waits for the same group
         ▲                                     │
         └── 0.1 s, 0.2 s, … up to 1 s ◄───────┴─ the coordinator has moved, is loading or cannot be reached

An operation is repeated until it succeeds, fails for good, or its time is over. Repetitions are harmless: the share coordinator
ignores them. Apache Kafka's counterparts are DefaultStatePersister and PersisterStateManager.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from msgspec import Struct

from ottla.broker.coordinators.share_coordinator import (
    DeleteState,
    InitializeState,
    OnResult,
    Operation,
    ReadState,
    ShareCoordinator,
    StateResult,
    SummarizeState,
    WriteState,
    coordinator_key,
)
from ottla.broker.event_loop.timers import Timers
from ottla.broker.peers.batched_requests import BatchedRequests, Form
from ottla.broker.peers.peers import RemoteBrokers
from ottla.clock import Clock
from ottla.coordination.share.share_state import UNKNOWN, from_wire_batches, to_wire_batches
from ottla.errors import ErrorCode, OttlaError
from ottla.protocol.messages import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)
from ottla.protocol.schema import Message

log = logging.getLogger(__name__)

PATIENCE_SECONDS = 15.0
"""The time for which an operation is repeated. It covers the election of another coordinator."""
FIRST_BACKOFF_SECONDS, LAST_BACKOFF_SECONDS = 0.1, 1.0
TRANSIENT = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NETWORK_EXCEPTION,
    }
)
"""The errors after which an operation is repeated."""


class PendingOperation(Struct, eq=False):
    """An operation without a result yet."""

    operation: Operation
    on_result: OnResult
    deadline: float
    backoff: float = FIRST_BACKOFF_SECONDS


class SharePersister:
    """The operations under way. Belongs to the event loop."""

    def __init__(
        self,
        coordinator: Callable[[], ShareCoordinator],
        coordinator_of: Callable[[str], int],
        node_id: int,
        timers: Timers,
        clock: Clock,
        remote: RemoteBrokers | None = None,
    ) -> None:
        """`coordinator` returns this broker's own coordinator; `coordinator_of` the broker that coordinates a key, -1 if there is none.

        `remote` is None for the only broker of a cluster.
        """
        self._coordinator = coordinator
        self._coordinator_of = coordinator_of
        self._node_id = node_id
        self._timers = timers
        self._clock = clock
        self._remote = remote
        self._is_closed = False
        self._requests: BatchedRequests[PendingOperation] | None = None
        if remote is not None:
            connect = partial(remote.connect, "share")
            self._requests = BatchedRequests(
                remote.address, connect, choose_operations, build_request, self._handle_response
            )

    def submit(self, operation: Operation, on_result: OnResult) -> None:
        """Start an operation. `on_result` may be called within this call, and is not called after `close`."""
        self._send(PendingOperation(operation, on_result, self._clock.monotonic() + PATIENCE_SECONDS))

    def handle_new_metadata(self) -> None:
        """Repeat the operations that were sent to a broker which no longer is the coordinator; it may be disconnected."""
        if self._requests is not None:
            withdrawn = self._requests.withdraw(lambda broker, pending: self._find_coordinator(pending) != broker)
            for each in withdrawn:
                self._finish(each, StateResult(ErrorCode.NOT_COORDINATOR))

    def close(self) -> None:
        self._is_closed = True
        if self._requests is not None:
            self._requests.close()

    def _find_coordinator(self, pending: PendingOperation) -> int:
        return self._coordinator_of(coordinator_key(pending.operation.key))

    def _send(self, pending: PendingOperation) -> None:
        if self._is_closed:
            return
        broker = self._find_coordinator(pending)
        remote = self._remote
        # Without a leader this broker's own coordinator creates the topic, or returns the error.
        if broker in (self._node_id, -1):
            self._coordinator().submit(pending.operation, lambda result: self._finish(pending, result))
        elif remote is None or self._requests is None or remote.address(broker) is None:
            self._finish(pending, StateResult(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        else:
            self._requests.add(broker, pending)

    def _finish(self, pending: PendingOperation, result: StateResult) -> None:
        """Report a result, or repeat the operation after an error that may be over soon."""
        if self._is_closed:
            return
        now = self._clock.monotonic()
        if result.error not in TRANSIENT or now + pending.backoff >= pending.deadline:
            if result.error in TRANSIENT:
                log.warning("share state operation failed key=%s error=%d", pending.operation.key, result.error)
                result = StateResult(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            pending.on_result(result)
            return
        self._timers.schedule(now + pending.backoff, lambda: self._send(pending))
        pending.backoff = min(2 * pending.backoff, LAST_BACKOFF_SECONDS)

    def _handle_response(self, broker: int, sent: list[PendingOperation], response: Any) -> None:
        results: Mapping[tuple[UUID, int], StateResult] = {}
        if isinstance(response, OttlaError):
            log.warning("a request to the share coordinator failed broker=%d error=%s", broker, response)
        else:
            results = results_of(response)
        lost = StateResult(ErrorCode.NETWORK_EXCEPTION)
        for each in sent:
            key = each.operation.key
            self._finish(each, results.get((key.topic_id, key.partition), lost))


def choose_operations(waiting: Sequence[PendingOperation]) -> list[PendingOperation]:
    """Return the operations for the next request: those of the first one's kind and group, one for each partition."""
    first = waiting[0].operation
    chosen: dict[tuple[UUID, int], PendingOperation] = {}
    for each in waiting:
        key = each.operation.key
        if type(each.operation) is type(first) and key.group_id == first.key.group_id:
            chosen.setdefault((key.topic_id, key.partition), each)
    return list(chosen.values())


def build_request(pending: list[PendingOperation]) -> Form:
    operations = [each.operation for each in pending]
    build = FORMS[type(operations[0])]
    return build(operations[0].key.group_id, operations)


def by_topic(operations: Iterable[Any], convert: Callable[[Any], Any]) -> list[tuple[UUID, list[Any]]]:
    """Return the converted operations by topic."""
    topics: dict[UUID, list[Any]] = {}
    for each in operations:
        topics.setdefault(each.key.topic_id, []).append(convert(each))
    return list(topics.items())


def initialize_form(group_id: str, operations: Sequence[InitializeState]) -> Form:
    wire = initialize_share_group_state
    topics = by_topic(
        operations, lambda each: wire.PartitionData(each.key.partition, each.state_epoch, each.start_offset)
    )
    request = wire.InitializeShareGroupStateRequest(group_id, [wire.InitializeStateData(*each) for each in topics])
    return Form(request, 0, wire.InitializeShareGroupStateResponse)


def read_form(group_id: str, operations: Sequence[ReadState]) -> Form:
    wire = read_share_group_state
    topics = by_topic(operations, lambda each: wire.PartitionData(each.key.partition, each.leader_epoch))
    request = wire.ReadShareGroupStateRequest(group_id, [wire.ReadStateData(*each) for each in topics])
    return Form(request, 0, wire.ReadShareGroupStateResponse)


def write_form(group_id: str, operations: Sequence[WriteState]) -> Form:
    wire = write_share_group_state

    def convert(each: WriteState) -> wire.PartitionData:
        return wire.PartitionData(
            each.key.partition,
            each.state_epoch,
            each.leader_epoch,
            each.start_offset,
            each.delivery_complete_count,
            to_wire_batches(each.batches),
        )

    topics = by_topic(operations, convert)
    request = wire.WriteShareGroupStateRequest(group_id, [wire.WriteStateData(*each) for each in topics])
    return Form(request, 1, wire.WriteShareGroupStateResponse)


def summary_form(group_id: str, operations: Sequence[SummarizeState]) -> Form:
    wire = read_share_group_state_summary
    topics = by_topic(operations, lambda each: wire.PartitionData(each.key.partition, UNKNOWN))
    request = wire.ReadShareGroupStateSummaryRequest(group_id, [wire.ReadStateSummaryData(*each) for each in topics])
    return Form(request, 1, wire.ReadShareGroupStateSummaryResponse)


def delete_form(group_id: str, operations: Sequence[DeleteState]) -> Form:
    wire = delete_share_group_state
    topics = by_topic(operations, lambda each: wire.PartitionData(each.key.partition))
    request = wire.DeleteShareGroupStateRequest(group_id, [wire.DeleteStateData(*each) for each in topics])
    return Form(request, 0, wire.DeleteShareGroupStateResponse)


FORMS: Mapping[type, Callable[[str, Any], Form]] = {
    InitializeState: initialize_form,
    ReadState: read_form,
    WriteState: write_form,
    SummarizeState: summary_form,
    DeleteState: delete_form,
}
"""The request for each kind of operation."""


def results_of(response: Message) -> dict[tuple[UUID, int], StateResult]:
    """Return the results in a response, by topic id and partition."""
    return {
        (topic.topic_id, each.partition): result_in(each)
        for topic in response.results  # type: ignore[attr-defined]  # all five responses have it
        for each in topic.partitions
    }


def result_in(partition: Any) -> StateResult:
    match partition:
        case read_share_group_state.PartitionResult():
            batches = tuple(from_wire_batches(partition.state_batches))
            return StateResult(
                partition.error_code, partition.state_epoch, start_offset=partition.start_offset, batches=batches
            )
        case read_share_group_state_summary.PartitionResult():
            return StateResult(
                partition.error_code,
                partition.state_epoch,
                partition.leader_epoch,
                partition.start_offset,
                partition.delivery_complete_count,
            )
    return StateResult(partition.error_code)
