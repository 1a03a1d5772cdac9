"""AlterPartition: a leader tells who is in sync with it, and is told how the partition is then (KIP-497, KIP-903)."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from ottla.coordination.cluster.topic import PartitionState, Topic
from ottla.coordination.controller.draft import ClusterDraft
from ottla.coordination.controller.heartbeats import epoch_error
from ottla.coordination.controller.partition_change import RECOVERED, RECOVERING, Wanted
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
"""Of a broker in sync: the leader is too old to know in which incarnation it fetched."""


def decide(draft: ClusterDraft, request: AlterPartitionRequest) -> AlterPartitionResponse:
    """Each partition as it is then, or what is wrong with what is said of it."""
    error = epoch_error(draft, request.broker_id, request.broker_epoch)
    if error:
        return AlterPartitionResponse(error_code=error)
    topics = []
    for asked in request.topics:
        topic = draft.metadata.topic_by_id(asked.topic_id)
        answers = [answer_of(draft, request.broker_id, topic, each) for each in asked.partitions]
        topics.append(TopicData(asked.topic_id, answers))
    return AlterPartitionResponse(topics=topics)


def answer_of(draft: ClusterDraft, broker: int, topic: Topic | None, told: RequestPartitionData) -> PartitionData:
    if topic is None:
        return PartitionData(told.partition_index, ErrorCode.UNKNOWN_TOPIC_ID)
    state = draft.partition(topic, told.partition_index)
    if state is None:
        return PartitionData(told.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    isr = in_sync(told)
    error = error_of(draft, broker, state, told, isr)
    if error:
        return PartitionData(told.partition_index, error)
    wanted = Wanted(
        draft.election(topic),
        isr=tuple(each.broker_id for each in isr),
        leader_recovery_state=told.leader_recovery_state,
        directories=found_again(draft, state, [each.broker_id for each in isr]),
    )
    after = draft.change(topic, state, wanted) or state
    if after.leader != broker:
        # A move is complete with this, and another leads: that is written, and the one that asked has to hear of it.
        return PartitionData(told.partition_index, ErrorCode.NEW_LEADER_ELECTED)
    return PartitionData(
        state.index, 0, after.leader, after.leader_epoch, after.isr, after.leader_recovery_state, after.partition_epoch
    )


def found_again(draft: ClusterDraft, state: PartitionState, isr: Sequence[int]) -> dict[int, UUID]:
    """Where copies lie that come to be in sync, of which it was known that their directory is gone: their leader says that they are there.

    Else one of them could be the last in sync and not lead, before its broker has said where it is (0106).
    """
    known = dict(zip(state.replicas, state.directories, strict=True))
    come = [each for each in isr if each not in state.isr and not draft.online(each, known[each])]
    return {each: draft.new_directory(each) for each in come}


def in_sync(told: RequestPartitionData) -> Sequence[BrokerState]:
    """Who is said to be in sync, in either version's way."""
    return told.new_isr_with_epochs or [BrokerState(broker, ANY_EPOCH) for broker in told.new_isr]


def error_of(
    draft: ClusterDraft, broker: int, state: PartitionState, told: RequestPartitionData, isr: Sequence[BrokerState]
) -> int:
    """The first of what is wrong, in Kafka's order. Who knows of a later epoch than the controller asks another than the active one."""
    brokers = [each.broker_id for each in isr]
    recovering = told.leader_recovery_state == RECOVERING
    ahead = told.leader_epoch > state.leader_epoch or told.partition_epoch > state.partition_epoch
    faults = (
        (ahead, ErrorCode.NOT_CONTROLLER),
        (told.leader_epoch < state.leader_epoch, ErrorCode.FENCED_LEADER_EPOCH),
        (broker != state.leader, ErrorCode.INVALID_REQUEST),
        (told.partition_epoch < state.partition_epoch, ErrorCode.INVALID_UPDATE_VERSION),
        (len(set(brokers)) < len(brokers) or not set(brokers) <= set(state.replicas), ErrorCode.INVALID_REQUEST),
        (state.leader not in brokers, ErrorCode.INVALID_REQUEST),
        (recovering and (len(brokers) > 1 or state.leader_recovery_state == RECOVERED), ErrorCode.INVALID_REQUEST),
        (not all(eligible(draft, each) for each in isr), ErrorCode.INELIGIBLE_REPLICA),
    )
    return next((code for wrong, code in faults if wrong), ErrorCode.NONE)


def eligible(draft: ClusterDraft, told: BrokerState) -> bool:
    """Whether a broker may be in sync: it is there, wants to stay, and has not been started anew since it fetched."""
    known = draft.registrations.get(told.broker_id)
    return known is not None and draft.active(told.broker_id) and told.broker_epoch in (ANY_EPOCH, known.epoch)
