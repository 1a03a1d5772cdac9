"""The states of share groups at the share coordinator, on behalf of the group coordinator (KIP-932).

    heartbeat ──► records: initializing ──► InitializeShareGroupState for each partition ──► record: initialized
    deletion ───► records: deleting ─────► DeleteShareGroupState for each partition ───────► record: deleted

A failed initialization is repeated by the next heartbeat, and everything is repeated after the shard was loaded: the share
coordinator ignores repetitions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from ottla.broker.metadata.topics import Topics
from ottla.broker.state_machines.runtime import Runtime
from ottla.coordination.groups.consumer.member import TopicIdPartition
from ottla.coordination.groups.shard import Shard
from ottla.coordination.groups.share.events import Initialization, ShareTopicsDeleted, StateDeleted, StateInitialized
from ottla.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.coordinators.share_coordinator import Operation, StateResult
    from ottla.broker.coordinators.share_persister import SharePersister

log = logging.getLogger(__name__)
Results = Mapping[TopicIdPartition, "StateResult"]
OnResults = Callable[[Results], None]
Submit = Callable[[str, Callable[[int], Any]], Any]
"""Decides an event on the shard of a group; raises KafkaError if that is not possible."""


class ShareGroupStates:
    """The operations of this group coordinator. Belongs to the event loop."""

    def __init__(self, persister: Callable[[], SharePersister], topics: Topics, submit: Submit) -> None:
        self._persister = persister
        self._topics = topics
        self._submit = submit
        self._initializing: set[tuple[str, int, TopicIdPartition]] = set()
        """Group, state epoch and partition of the initializations under way."""

    def initialize_waiting(self, shard: Shard, group_ids: Iterable[str] | None = None) -> None:
        """Create the states that groups wait for, unless they are being created."""
        for found in shard.shares.list_initializations(group_ids):
            self.initialize(found)

    def initialize(self, found: Initialization, on_done: OnResults | None = None) -> None:
        """Create or reset states, and record those that were created. `on_done` is called afterwards.

        Without `on_done` those that are being created are skipped.
        """
        from ottla.broker.coordinators.share_coordinator import InitializeState
        from ottla.coordination.share.share_state import SharePartitionKey

        operations: dict[TopicIdPartition, Operation] = {}
        for topic_id, index, start_offset in found.offsets:
            if on_done is None and (found.group, found.state_epoch, (topic_id, index)) in self._initializing:
                continue
            key = SharePartitionKey(found.group, topic_id, index)
            operations[topic_id, index] = InitializeState(key, found.state_epoch, start_offset)
        under_way = {(found.group, found.state_epoch, each) for each in operations}
        self._initializing |= under_way

        def complete(results: Results) -> None:
            self._initializing -= under_way
            created = [each for each, result in results.items() if not result.error]
            failed = {result.error for result in results.values() if result.error}
            if failed:
                log.warning("states were not initialized group=%s errors=%s", found.group, sorted(failed))
            if created:
                self._record(found.group, lambda ticket: StateInitialized(ticket, found.group, created))
            if on_done is not None:
                on_done(results)

        self._operate(operations, complete)

    def delete(self, group_id: str, partitions: Iterable[TopicIdPartition], on_done: OnResults) -> None:
        """Delete states, and record the topics of which all are deleted. `on_done` is called afterwards."""
        from ottla.broker.coordinators.share_coordinator import DeleteState
        from ottla.coordination.share.share_state import SharePartitionKey

        operations: dict[TopicIdPartition, Operation] = {
            each: DeleteState(SharePartitionKey(group_id, *each)) for each in partitions
        }

        def complete(results: Results) -> None:
            deleted = deleted_topics(results)
            if deleted:
                self._record(group_id, lambda ticket: StateDeleted(ticket, group_id, deleted))
            on_done(results)

        self._operate(operations, complete)

    def summarize(self, group_id: str, partitions: Iterable[TopicIdPartition], on_done: OnResults) -> None:
        """Read the start offsets of partitions."""
        from ottla.broker.coordinators.share_coordinator import SummarizeState
        from ottla.coordination.share.share_state import SharePartitionKey

        self._operate({each: SummarizeState(SharePartitionKey(group_id, *each)) for each in partitions}, on_done)

    def resume(self, runtime: Runtime[Shard]) -> None:
        """Repeat what was under way when the shard was last active, and forget topics that were deleted meanwhile."""
        shares = runtime.machine.shares
        if not shares.groups:
            return
        self.drop_deleted_topics(runtime)
        self.initialize_waiting(runtime.machine)
        for group_id, topic_id in list(shares.list_deletions()):
            topic = self._topics.with_id(topic_id)
            count = 0 if topic is None else len(topic.partitions)
            self.delete(group_id, [(topic_id, index) for index in range(count)], lambda results: None)

    def drop_deleted_topics(self, runtime: Runtime[Shard]) -> None:
        """Forget the states of topics that are not in the metadata any more; the share coordinator deletes them by itself."""
        groups = runtime.machine.shares.groups.values()
        named = {topic_id for group in groups for topic_id in group.progress.names}
        gone = frozenset(each for each in named if self._topics.with_id(each) is None)
        if gone:
            runtime.submit(lambda ticket: ShareTopicsDeleted(ticket, gone))

    def _operate(self, operations: Mapping[TopicIdPartition, Operation], on_done: OnResults) -> None:
        results: dict[TopicIdPartition, StateResult] = {}
        if not operations:
            on_done(results)

        def complete(partition: TopicIdPartition, result: StateResult) -> None:
            results[partition] = result
            if len(results) == len(operations):
                on_done(results)

        for each, operation in operations.items():
            self._persister().submit(operation, partial(complete, each))

    def _record(self, group_id: str, event: Callable[[int], Any]) -> None:
        try:
            self._submit(group_id, event)
        except KafkaError as error:
            # The shard has moved. Its next coordinator repeats the operation.
            log.info("progress was not recorded group=%s error=%s", group_id, error)


def deleted_topics(results: Results) -> Collection[UUID]:
    """Return the topics of which every state was deleted, or does not exist because the topic does not."""
    gone = (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    failed = {topic_id for (topic_id, _), result in results.items() if result.error not in gone}
    return frozenset(topic_id for topic_id, _ in results) - failed
