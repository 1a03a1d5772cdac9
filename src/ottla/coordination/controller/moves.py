"""AlterPartitionReassignments and ListPartitionReassignments: partitions move to other brokers, and do not after all (KIP-455, KIP-860)."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.coordination.cluster.topic import PartitionState, Topic
from ottla.coordination.cluster.topic_request import Refusal
from ottla.coordination.controller.draft import ClusterDraft
from ottla.coordination.controller.layouts import check_assignment
from ottla.coordination.controller.partition_change import Election, Wanted
from ottla.coordination.controller.reassignment import begun, copies_of, reverted
from ottla.errors import ErrorCode
from ottla.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from ottla.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def decide(draft: ClusterDraft, request: AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsResponse:
    """A result for each partition; those that may move do, whatever becomes of the others."""
    same_count = not request.allow_replication_factor_change
    responses = [
        ReassignableTopicResponse(
            topic.name, [answer_of(draft, topic.name, each, same_count) for each in topic.partitions]
        )
        for topic in request.topics
    ]
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change, responses=responses
    )


def answer_of(
    draft: ClusterDraft, name: str, wanted: ReassignablePartition, same_count: bool
) -> ReassignablePartitionResponse:
    try:
        move(draft, name, wanted, same_count)
    except Refusal as refusal:
        return ReassignablePartitionResponse(wanted.partition_index, refusal.code, str(refusal))
    return ReassignablePartitionResponse(wanted.partition_index)


def move(draft: ClusterDraft, name: str, wanted: ReassignablePartition, same_count: bool) -> None:
    """Begin a move, or end it where it began."""
    topic = draft.metadata.topics.get(name)
    if topic is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
    state = draft.partition(topic, wanted.partition_index)
    if state is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name!r} has no partition {wanted.partition_index}")
    if wanted.replicas is None:
        cancel(draft, topic, state)
        return
    check_assignment(draft, wanted.replicas, None)
    if same_count:
        check_count(state, len(wanted.replicas))
    draft.change(topic, state, Wanted(Election.ONLINE, copies=begun(state, tuple(wanted.replicas))))


def check_count(state: PartitionState, count: int) -> None:
    """Refuse another count of copies than the partition has, or will have once it has moved."""
    present = len(set(state.replicas) - set(state.removing_replicas))
    if count != present:
        raise Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"{count} copies are asked for where there are {present}; name as many",
        )


def cancel(draft: ClusterDraft, topic: Topic, state: PartitionState) -> None:
    """Take away who came, and keep who was there."""
    if not copies_of(state).moving:
        raise Refusal(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, f"partition {topic.name}-{state.index} is not being moved")
    copies, loses = reverted(state)
    election = draft.election(topic)
    if loses and election is not Election.UNCLEAN:
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"the move of partition {topic.name}-{state.index} cannot be taken back: only brokers that came with it are in sync, "
            "and records would be lost; let it complete, or set unclean.leader.election.enable",
        )
    draft.change(topic, state, Wanted(election, copies=copies))


def listed(draft: ClusterDraft, request: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
    """What is being moved, of all or of what is named."""
    topics = draft.metadata.topics
    asked: Iterable[tuple[str, Iterable[int]]]
    if request.topics is None:
        asked = ((name, range(len(topic.partitions))) for name, topic in topics.items())
    else:
        asked = ((each.name, each.partition_indexes) for each in request.topics if each.name in topics)
    moving = ((name, [m for m in (ongoing(draft, topics[name], i) for i in indexes) if m]) for name, indexes in asked)
    return ListPartitionReassignmentsResponse(
        topics=[OngoingTopicReassignment(name, each) for name, each in moving if each]
    )


def ongoing(draft: ClusterDraft, topic: Topic, index: int) -> OngoingPartitionReassignment | None:
    state = draft.partition(topic, index)
    if state is None or not copies_of(state).moving:
        return None
    return OngoingPartitionReassignment(index, state.replicas, state.adding_replicas, state.removing_replicas)
