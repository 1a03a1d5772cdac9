"""AlterPartitionReassignments and ListPartitionReassignments: start, cancel and list reassignments (KIP-455, KIP-860).

A reassignment adds the new replicas to the partition at once; the old ones are removed when all new ones are in the ISR
(see `reassignment`). A reassignment that is started during another one replaces its target. A null list of replicas
cancels it: the added replicas are removed. That is rejected if only added replicas are in the ISR, unless the topic
allows unclean elections.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.coordination.cluster.topic import ClusterTopic, PartitionState
from ottla.coordination.cluster.topic_request import Refusal
from ottla.coordination.controller.draft import ClusterDraft
from ottla.coordination.controller.layouts import check_assignment
from ottla.coordination.controller.partition_change import ElectionType, RequestedChange
from ottla.coordination.controller.reassignment import read_replicas, revert_reassignment, start_reassignment
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
    """Start or cancel the reassignments. Each partition has its own result."""
    same_count = not request.allow_replication_factor_change
    responses = [
        ReassignableTopicResponse(
            topic.name, [reassign_partition(draft, topic.name, each, same_count) for each in topic.partitions]
        )
        for topic in request.topics
    ]
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change, responses=responses
    )


def reassign_partition(
    draft: ClusterDraft, name: str, wanted: ReassignablePartition, keeps_replication_factor: bool
) -> ReassignablePartitionResponse:
    try:
        change_reassignment(draft, name, wanted, keeps_replication_factor)
    except Refusal as refusal:
        return ReassignablePartitionResponse(wanted.partition_index, refusal.code, str(refusal))
    return ReassignablePartitionResponse(wanted.partition_index)


def change_reassignment(
    draft: ClusterDraft, name: str, wanted: ReassignablePartition, keeps_replication_factor: bool
) -> None:
    """Start the reassignment of a partition, or cancel it. Raise Refusal if that is not possible."""
    topic = draft.metadata.topics.get(name)
    if topic is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
    state = draft.find_partition(topic, wanted.partition_index)
    if state is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name!r} has no partition {wanted.partition_index}")
    if wanted.replicas is None:
        cancel_reassignment(draft, topic, state)
        return
    check_assignment(draft, wanted.replicas, None)
    if keeps_replication_factor:
        check_count(state, len(wanted.replicas))
    draft.change_partition(
        topic, state, RequestedChange(ElectionType.ONLINE, replicas=start_reassignment(state, tuple(wanted.replicas)))
    )


def check_count(state: PartitionState, count: int) -> None:
    """Raise Refusal if the replication factor would change; replicas that are being removed do not count (KIP-860)."""
    present = len(set(state.replicas) - set(state.removing_replicas))
    if count != present:
        raise Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"{count} replicas are requested, and there are {present}: request as many",
        )


def cancel_reassignment(draft: ClusterDraft, topic: ClusterTopic, state: PartitionState) -> None:
    """Cancel a reassignment: remove the added replicas and keep the original ones."""
    if not read_replicas(state).is_reassigned:
        raise Refusal(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, f"partition {topic.name}-{state.index} is not being moved")
    replicas, loses = revert_reassignment(state)
    election = draft.find_automatic_election(topic)
    if loses and election is not ElectionType.UNCLEAN:
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"the move of partition {topic.name}-{state.index} cannot be cancelled: only added replicas are in sync, "
            "and records would be lost; let it complete, or set unclean.leader.election.enable",
        )
    draft.change_partition(topic, state, RequestedChange(election, replicas=replicas))


def list_reassignments(
    draft: ClusterDraft, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Return the reassignments in progress, of all partitions or of the requested ones."""
    topics = draft.metadata.topics
    requested: Iterable[tuple[str, Iterable[int]]]
    if request.topics is None:
        requested = ((name, range(len(topic.partitions))) for name, topic in topics.items())
    else:
        requested = ((each.name, each.partition_indexes) for each in request.topics if each.name in topics)
    moving = (
        (name, [m for m in (find_reassignment(draft, topics[name], i) for i in indexes) if m])
        for name, indexes in requested
    )
    return ListPartitionReassignmentsResponse(
        topics=[OngoingTopicReassignment(name, each) for name, each in moving if each]
    )


def find_reassignment(draft: ClusterDraft, topic: ClusterTopic, index: int) -> OngoingPartitionReassignment | None:
    """Return the reassignment of one partition; None if there is none."""
    state = draft.find_partition(topic, index)
    if state is None or not read_replicas(state).is_reassigned:
        return None
    return OngoingPartitionReassignment(index, state.replicas, state.adding_replicas, state.removing_replicas)
