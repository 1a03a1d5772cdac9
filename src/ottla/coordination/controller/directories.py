"""AssignReplicasToDirs: a broker reports the directories of its replicas (KIP-858).

A broker with several directories chooses one for each new replica and reports the choice. A replica in an unregistered
directory leaves the ISR; the reserved id LOST reports one that has no directory any more. If it was the only member of
the ISR, it stays the last known leader, as in Kafka, unless another active broker has a replica that was complete when
its process was killed (decision 0106): then that one is elected.
"""

from __future__ import annotations

from uuid import UUID

from ottla.coordination.cluster.topic import LOST, ClusterTopic, PartitionState
from ottla.coordination.controller.draft import ClusterDraft
from ottla.coordination.controller.heartbeats import find_epoch_error
from ottla.coordination.controller.partition_change import RequestedChange
from ottla.coordination.controller.reassignment import exclude_replicas
from ottla.errors import ErrorCode
from ottla.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    DirectoryData,
    PartitionData,
    TopicData,
)


def decide(draft: ClusterDraft, request: AssignReplicasToDirsRequest) -> AssignReplicasToDirsResponse:
    """Assign the replicas and return one result per partition, in order."""
    error = find_epoch_error(draft, request.broker_id, request.broker_epoch)
    if error:
        return AssignReplicasToDirsResponse(error_code=error)
    directories = []
    for directory in request.directories:
        topics = []
        for wanted_topic in directory.topics:
            topic = draft.metadata.find_topic_by_id(wanted_topic.topic_id)
            indexes = [each.partition_index for each in wanted_topic.partitions]
            results = [
                PartitionData(index, assign_replica(draft, request.broker_id, directory.id, topic, index))
                for index in indexes
            ]
            topics.append(TopicData(wanted_topic.topic_id, results))
        directories.append(DirectoryData(directory.id, topics))
    return AssignReplicasToDirsResponse(directories=directories)


def assign_replica(draft: ClusterDraft, broker: int, directory: UUID, topic: ClusterTopic | None, index: int) -> int:
    """Set the directory of a replica and return the error code.

    A replica in an unknown or lost directory leaves the ISR.
    """
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    state = draft.find_partition(topic, index)
    if state is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if broker not in state.replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    is_lost = directory not in draft.registrations[broker].log_dirs
    isr = exclude_replicas(state.isr, (broker,)) if is_lost else None
    lost = (broker,) if directory == LOST and has_complete_replica(draft, state, broker) else ()
    wanted = RequestedChange(
        draft.find_automatic_election(topic), isr=isr, incomplete=lost, empty=lost, directories={broker: directory}
    )
    draft.change_partition(topic, state, wanted, absent=(broker,) if is_lost else ())
    return ErrorCode.NONE


def has_complete_replica(draft: ClusterDraft, state: PartitionState, broker: int) -> bool:
    """Return True if another active broker has a replica that was complete when its process was killed.

    See `PartitionState.find_complete_replica`.
    """
    complete = state.find_complete_replica(broker)
    return (
        complete is not None
        and draft.is_active(complete)
        and draft.is_online(complete, state.directories[state.replicas.index(complete)])
    )
