"""Answers made of nothing but a request and an error."""

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
from ottla.testing.faults.refusing import carries_error, refusal

ERROR = ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_each_partition_of_a_produce_is_refused_under_its_name_and_number() -> None:
    data = [TopicProduceData("a", partition_data=[PartitionProduceData(0), PartitionProduceData(3)])]
    answer = refusal(ProduceRequest(topic_data=data), ProduceResponse, 12, ERROR)
    assert isinstance(answer, ProduceResponse)
    [topic] = answer.responses
    assert [(topic.name, each.index, each.error_code) for each in topic.partition_responses] == [
        ("a", 0, ERROR),
        ("a", 3, ERROR),
    ]


def test_a_fetch_says_it_of_partitions_and_not_of_its_session() -> None:
    request = FetchRequest(topics=[FetchTopic("a", partitions=[FetchPartition(2)])])
    answer = refusal(request, FetchResponse, 12, ERROR)
    assert isinstance(answer, FetchResponse)
    [partition] = answer.responses[0].partitions
    assert (answer.error_code, partition.partition_index, partition.error_code) == (0, 2, ERROR)


def test_offsets_topics_and_coordinators_are_refused_where_clients_look() -> None:
    commit = OffsetCommitRequest(topics=[OffsetCommitRequestTopic("a", partitions=[OffsetCommitRequestPartition(1)])])
    offsets = refusal(commit, OffsetCommitResponse, 9, ERROR)
    assert isinstance(offsets, OffsetCommitResponse)
    assert offsets.topics[0].partitions[0].partition_index == 1
    made = refusal(CreateTopicsRequest(topics=[CreatableTopic("a")]), CreateTopicsResponse, 7, ERROR)
    assert isinstance(made, CreateTopicsResponse)
    assert [(each.name, each.error_code) for each in made.topics] == [("a", ERROR)]
    found = refusal(FindCoordinatorRequest(coordinator_keys=["g"]), FindCoordinatorResponse, 6, ERROR)
    assert isinstance(found, FindCoordinatorResponse)
    assert [(each.key, each.error_code) for each in found.coordinators] == [("g", ERROR)]


@pytest.mark.parametrize("key", [key for key in SERVED if carries_error(APIS[key].response)])
def test_every_answer_that_has_room_for_an_error_can_be_written(key: int) -> None:
    api = APIS[key]
    for version in range(api.versions.first, api.versions.last + 1):
        assert encode_response(refusal(api.request(), api.response, version, ERROR), version, 7)
