"""Error responses built from a request and an error code."""

from __future__ import annotations

import pytest

from ottla.errors import ErrorCode
from ottla.protocol.apis import APIS, SERVED
from ottla.protocol.conversation import encode_response
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from ottla.testing.faults.refusing import build_refusal, carries_error

ERROR = ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_each_partition_of_a_produce_is_refused_under_its_name_and_number() -> None:
    data = [TopicProduceData("a", partition_data=[PartitionProduceData(0), PartitionProduceData(3)])]
    answer = build_refusal(ProduceRequest(topic_data=data), ProduceResponse, 12, ERROR)
    assert isinstance(answer, ProduceResponse)
    [topic] = answer.responses
    assert [(topic.name, each.index, each.error_code) for each in topic.partition_responses] == [
        ("a", 0, ERROR),
        ("a", 3, ERROR),
    ]


def test_a_refused_fetch_has_partition_errors_and_no_session_error() -> None:
    request = FetchRequest(topics=[FetchTopic("a", partitions=[FetchPartition(2)])])
    answer = build_refusal(request, FetchResponse, 12, ERROR)
    assert isinstance(answer, FetchResponse)
    [partition] = answer.responses[0].partitions
    assert (answer.error_code, partition.partition_index, partition.error_code) == (0, 2, ERROR)


def test_offsets_topics_and_coordinators_are_refused_where_clients_look() -> None:
    commit = OffsetCommitRequest(topics=[OffsetCommitRequestTopic("a", partitions=[OffsetCommitRequestPartition(1)])])
    offsets = build_refusal(commit, OffsetCommitResponse, 9, ERROR)
    assert isinstance(offsets, OffsetCommitResponse)
    assert offsets.topics[0].partitions[0].partition_index == 1
    made = build_refusal(CreateTopicsRequest(topics=[CreatableTopic("a")]), CreateTopicsResponse, 7, ERROR)
    assert isinstance(made, CreateTopicsResponse)
    assert [(each.name, each.error_code) for each in made.topics] == [("a", ERROR)]
    found = build_refusal(FindCoordinatorRequest(coordinator_keys=["g"]), FindCoordinatorResponse, 6, ERROR)
    assert isinstance(found, FindCoordinatorResponse)
    assert [(each.key, each.error_code) for each in found.coordinators] == [("g", ERROR)]


@pytest.mark.parametrize("key", [key for key in SERVED if carries_error(APIS[key].response)])
def test_every_answer_that_has_room_for_an_error_can_be_written(key: int) -> None:
    api = APIS[key]
    for version in range(api.versions.first, api.versions.last + 1):
        assert encode_response(build_refusal(api.request(), api.response, version, ERROR), version, 7)
