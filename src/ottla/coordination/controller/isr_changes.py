"""AlterPartition: the leader of a partition proposes a new ISR (KIP-497, KIP-841, KIP-903).

The leader adds a follower that has caught up and removes one that lags; only the controller can make the change valid,
because it also fences brokers and elects leaders. The request carries the leader epoch and the partition epoch that the
leader knows. If either is outdated, the request is rejected. A broker that is fenced, in a controlled shutdown, or
restarted since it fetched is not added.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from ottla.coordination.cluster.topic import ClusterTopic, PartitionState
from ottla.coordination.controller.draft import ClusterDraft
from ottla.coordination.controller.heartbeats import find_epoch_error
from ottla.coordination.controller.partition_change import RECOVERED, RECOVERING, RequestedChange
from ottla.errors import ErrorCode
from ottla.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    RequestPartitionData,
    TopicData,
)

ANY_EPOCH = -1
"""The broker epoch of a replica in a request of a version without epochs."""


def decide(draft: ClusterDraft, request: AlterPartitionRequest) -> AlterPartitionResponse:
    """Change the ISRs and return for each partition its new state or an error code."""
    error = find_epoch_error(draft, request.broker_id, request.broker_epoch)
    if error:
        return AlterPartitionResponse(error_code=error)
    topics = []
    for wanted in request.topics:
        topic = draft.metadata.find_topic_by_id(wanted.topic_id)
        results = [change_isr(draft, request.broker_id, topic, each) for each in wanted.partitions]
        topics.append(TopicData(wanted.topic_id, results))
    return AlterPartitionResponse(topics=topics)


def change_isr(
    draft: ClusterDraft, broker: int, topic: ClusterTopic | None, proposal: RequestPartitionData
) -> PartitionData:
    if topic is None:
        return PartitionData(proposal.partition_index, ErrorCode.UNKNOWN_TOPIC_ID)
    state = draft.find_partition(topic, proposal.partition_index)
    if state is None:
        return PartitionData(proposal.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    isr = list_proposed_isr(proposal)
    error = find_error(draft, broker, state, proposal, isr)
    if error:
        return PartitionData(proposal.partition_index, error)
    wanted = RequestedChange(
        draft.find_automatic_election(topic),
        isr=tuple(each.broker_id for each in isr),
        leader_recovery_state=proposal.leader_recovery_state,
        directories=assign_new_directories(draft, state, [each.broker_id for each in isr]),
    )
    after = draft.change_partition(topic, state, wanted) or state
    if after.leader != broker:
        # The change completed a reassignment and another replica was elected. The records are written all the same.
        return PartitionData(proposal.partition_index, ErrorCode.NEW_LEADER_ELECTED)
    return PartitionData(
        state.index, 0, after.leader, after.leader_epoch, after.isr, after.leader_recovery_state, after.partition_epoch
    )


def assign_new_directories(draft: ClusterDraft, state: PartitionState, isr: Sequence[int]) -> dict[int, UUID]:
    """Return new directories for replicas that join the ISR although their recorded directory is lost.

    The leader has seen them fetch, so they exist. Otherwise such a replica could be the last in the ISR, and not be
    electable until its broker has reported the directory (decision 0106).
    """
    known = dict(zip(state.replicas, state.directories, strict=True))
    joining = [each for each in isr if each not in state.isr and not draft.is_online(each, known[each])]
    return {each: draft.choose_directory(each) for each in joining}


def list_proposed_isr(proposal: RequestPartitionData) -> Sequence[BrokerState]:
    """Return the proposed ISR with broker epochs; versions before 3 have none."""
    return proposal.new_isr_with_epochs or [BrokerState(broker, ANY_EPOCH) for broker in proposal.new_isr]


def find_error(
    draft: ClusterDraft, broker: int, state: PartitionState, proposal: RequestPartitionData, isr: Sequence[BrokerState]
) -> int:
    """Return the first error in Kafka's order of checks.

    A request with a later epoch than the metadata have is from a leader that knows a newer controller:
    NOT_CONTROLLER.
    """
    brokers = [each.broker_id for each in isr]
    recovering = proposal.leader_recovery_state == RECOVERING
    ahead = proposal.leader_epoch > state.leader_epoch or proposal.partition_epoch > state.partition_epoch
    faults = (
        (ahead, ErrorCode.NOT_CONTROLLER),
        (proposal.leader_epoch < state.leader_epoch, ErrorCode.FENCED_LEADER_EPOCH),
        (broker != state.leader, ErrorCode.INVALID_REQUEST),
        (proposal.partition_epoch < state.partition_epoch, ErrorCode.INVALID_UPDATE_VERSION),
        (len(set(brokers)) < len(brokers) or not set(brokers) <= set(state.replicas), ErrorCode.INVALID_REQUEST),
        (state.leader not in brokers, ErrorCode.INVALID_REQUEST),
        (recovering and (len(brokers) > 1 or state.leader_recovery_state == RECOVERED), ErrorCode.INVALID_REQUEST),
        (not all(is_eligible(draft, each) for each in isr), ErrorCode.INELIGIBLE_REPLICA),
    )
    return next((code for wrong, code in faults if wrong), ErrorCode.NONE)


def is_eligible(draft: ClusterDraft, proposed: BrokerState) -> bool:
    """Return True if the broker may be in the ISR: it is active and has not restarted since it fetched (KIP-841, KIP-903)."""
    known = draft.registrations.get(proposed.broker_id)
    return (
        known is not None and draft.is_active(proposed.broker_id) and proposed.broker_epoch in (ANY_EPOCH, known.epoch)
    )
