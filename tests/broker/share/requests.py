"""Requests of members of share groups, with short names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from ottla.protocol.messages import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)
from ottla.protocol.messages.share_group_describe import DescribedGroup, ShareGroupDescribeRequest
from ottla.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from tests.broker.wire import Wire

GROUP = "g"


def beat(
    wire: Wire, member: str = "a", epoch: int = 0, topics: Sequence[str] | None = None, group: str = GROUP
) -> ShareGroupHeartbeatResponse:
    """A heartbeat; one that joins names the topic `t`, unless others are given."""
    names = topics if topics is not None or epoch else ["t"]
    response: ShareGroupHeartbeatResponse = wire.ask(ShareGroupHeartbeatRequest(group, member, epoch, None, names))
    return response


def partitions_of(response: ShareGroupHeartbeatResponse) -> dict[UUID, list[int]]:
    assert response.assignment is not None
    return {each.topic_id: list(each.partitions) for each in response.assignment.topic_partitions}


def join(wire: Wire, member: str = "a", topics: Sequence[str] = ("t",), group: str = GROUP) -> int:
    """Join a group and beat until the member has partitions; return its epoch."""
    response = beat(wire, member, 0, topics, group)
    while True:
        assert response.error_code == 0, response.error_message
        if response.assignment is not None and response.assignment.topic_partitions:
            return response.member_epoch
        response = beat(wire, member, response.member_epoch, group=group)


def describe(wire: Wire, group: str = GROUP) -> DescribedGroup:
    (found,) = wire.ask(ShareGroupDescribeRequest([group])).groups
    described: DescribedGroup = found
    return described


def initialize_state(wire: Wire, topic: UUID, epoch: int = 0, start: int = -1, partition: int = 0) -> int:
    wire_of = initialize_share_group_state
    part = wire_of.InitializeStateData(topic, [wire_of.PartitionData(partition, epoch, start)])
    return only_result(wire.ask(wire_of.InitializeShareGroupStateRequest(GROUP, [part]))).error_code  # type: ignore[no-any-return]


def read_state(wire: Wire, topic: UUID, leader_epoch: int = 0) -> read_share_group_state.PartitionResult:
    wire_of = read_share_group_state
    part = wire_of.ReadStateData(topic, [wire_of.PartitionData(0, leader_epoch)])
    return only_result(wire.ask(wire_of.ReadShareGroupStateRequest(GROUP, [part])))  # type: ignore[no-any-return]


def write_state(
    wire: Wire,
    topic: UUID,
    *batches: tuple[int, int, int, int],
    start: int = 0,
    epoch: int = 0,
    leader_epoch: int = 0,
    complete: int = 0,
) -> int:
    wire_of = write_share_group_state
    stored = [read_share_group_state.StateBatch(*each) for each in batches]
    part = wire_of.PartitionData(0, epoch, leader_epoch, start, complete, stored)
    request = wire_of.WriteShareGroupStateRequest(GROUP, [wire_of.WriteStateData(topic, [part])])
    return only_result(wire.ask(request)).error_code  # type: ignore[no-any-return]


def summarize_state(wire: Wire, topic: UUID) -> read_share_group_state_summary.PartitionResult:
    wire_of = read_share_group_state_summary
    part = wire_of.ReadStateSummaryData(topic, [wire_of.PartitionData(0, -1)])
    return only_result(wire.ask(wire_of.ReadShareGroupStateSummaryRequest(GROUP, [part])))  # type: ignore[no-any-return]


def delete_state(wire: Wire, topic: UUID) -> int:
    wire_of = delete_share_group_state
    part = wire_of.DeleteStateData(topic, [wire_of.PartitionData(0)])
    return only_result(wire.ask(wire_of.DeleteShareGroupStateRequest(GROUP, [part]))).error_code  # type: ignore[no-any-return]


def only_result(response: Any) -> Any:
    (topic,) = response.results
    (found,) = topic.partitions
    return found


def batches_of(state: read_share_group_state.PartitionResult) -> list[tuple[int, int, int, int]]:
    return [
        (each.first_offset, each.last_offset, each.delivery_state, each.delivery_count) for each in state.state_batches
    ]


def topic_id(wire: Wire, name: str = "t") -> UUID:
    found: UUID = wire.metadata(name).topics[0].topic_id
    return found
