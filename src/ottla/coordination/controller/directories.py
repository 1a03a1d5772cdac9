"""AssignReplicasToDirs: a broker says in which of its directories copies lie (KIP-858)."""

from __future__ import annotations

from uuid import UUID

from ottla.coordination.cluster.topic import LOST, PartitionState, Topic
from ottla.coordination.controller.draft import ClusterDraft
from ottla.coordination.controller.heartbeats import epoch_error
from ottla.coordination.controller.partition_change import Wanted
from ottla.coordination.controller.reassignment import without
from ottla.errors import ErrorCode
from ottla.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    DirectoryData,
    PartitionData,
    TopicData,
)


def decide(draft: ClusterDraft, request: AssignReplicasToDirsRequest) -> AssignReplicasToDirsResponse:
    """A result for each partition, in order."""
    error = epoch_error(draft, request.broker_id, request.broker_epoch)
    if error:
        return AssignReplicasToDirsResponse(error_code=error)
    directories = []
    for directory in request.directories:
        topics = []
        for asked in directory.topics:
            topic = draft.metadata.topic_by_id(asked.topic_id)
            indexes = [each.partition_index for each in asked.partitions]
            answers = [
                PartitionData(index, assign(draft, request.broker_id, directory.id, topic, index)) for index in indexes
            ]
            topics.append(TopicData(asked.topic_id, answers))
        directories.append(DirectoryData(directory.id, topics))
    return AssignReplicasToDirsResponse(directories=directories)


def assign(draft: ClusterDraft, broker: int, directory: UUID, topic: Topic | None, index: int) -> int:
    """Let a copy lie there; one whose directory is gone is in sync no more."""
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    state = draft.partition(topic, index)
    if state is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if broker not in state.replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    gone = directory not in draft.registrations[broker].log_dirs
    isr = without(state.isr, (broker,)) if gone else None
    forsaken = (broker,) if directory == LOST and has_living_heir(draft, state, broker) else ()
    wanted = Wanted(draft.election(topic), isr=isr, lost=forsaken, gone=forsaken, directories={broker: directory})
    draft.change(topic, state, wanted, absent=(broker,) if gone else ())
    return ErrorCode.NONE


def has_living_heir(draft: ClusterDraft, state: PartitionState, broker: int) -> bool:
    """Whether a leader that alone is in sync can be done without."""
    heir = state.heir_of(broker)
    return heir is not None and draft.active(heir) and draft.online(heir, state.directories[state.replicas.index(heir)])
