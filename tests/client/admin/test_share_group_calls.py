"""The responses about share groups, as an admin returns them."""

from __future__ import annotations

from uuid import UUID

import pytest

from ottla.client.admin import SharePartitionOffsetInfo
from ottla.client.admin.share_group_calls import (
    read_altered_offsets,
    read_deleted_offsets,
    read_share_groups,
    read_start_offsets,
)
from ottla.errors import ErrorCode, KafkaError
from ottla.model import Node, TopicPartition
from ottla.protocol.messages import alter_share_group_offsets as alter
from ottla.protocol.messages import delete_share_group_offsets as delete
from ottla.protocol.messages import describe_share_group_offsets as offsets
from ottla.protocol.messages import share_group_describe as describe

COORDINATOR = Node(1, "kafka", 9092)
TOPIC = UUID(int=1)


def test_a_group_has_its_members_and_their_partitions() -> None:
    assignment = describe.Assignment([describe.TopicPartitions(TOPIC, "flights", [1, 0])])
    member = describe.Member("m", "north", 3, "client", "/host", ["flights"], assignment)
    response = describe.ShareGroupDescribeResponse(
        groups=[describe.DescribedGroup(0, None, "g", "Stable", 4, 3, "simple", [member])]
    )

    group = read_share_groups({"g": COORDINATOR}, ["g"], response)["g"]

    assert not isinstance(group, KafkaError)
    assert (group.state, group.coordinator, group.group_epoch, group.target_assignment_epoch) == (
        "Stable",
        COORDINATOR,
        4,
        3,
    )
    (found,) = group.members
    assert found.assignment == (TopicPartition("flights", 0), TopicPartition("flights", 1))
    assert (found.member_epoch, found.subscribed_topics, found.rack_id) == (3, ("flights",), "north")


def test_an_unknown_group_is_an_error() -> None:
    response = describe.ShareGroupDescribeResponse(
        groups=[describe.DescribedGroup(ErrorCode.GROUP_ID_NOT_FOUND, "no such", "g")]
    )

    error = read_share_groups({}, ["g"], response)["g"]

    assert isinstance(error, KafkaError)
    assert str(error) == "GROUP_ID_NOT_FOUND: there is no group 'g'"


def start_offsets(*parts: offsets.DescribeShareGroupOffsetsResponsePartition) -> object:
    topic = offsets.DescribeShareGroupOffsetsResponseTopic("flights", TOPIC, list(parts))
    response = offsets.DescribeShareGroupOffsetsResponse(
        groups=[offsets.DescribeShareGroupOffsetsResponseGroup("g", [topic])]
    )
    return read_start_offsets(["g"], response)["g"]


def test_start_offsets_have_lags_where_they_are_known() -> None:
    part = offsets.DescribeShareGroupOffsetsResponsePartition

    found = start_offsets(part(1, 7, 2, 5), part(0, 3, 1, -1), part(2, -1, -1, -1))

    assert found == {
        TopicPartition("flights", 0): SharePartitionOffsetInfo(3, 1, None),
        TopicPartition("flights", 1): SharePartitionOffsetInfo(7, 2, 5),
    }


def test_an_error_of_one_partition_fails_the_call() -> None:
    part = offsets.DescribeShareGroupOffsetsResponsePartition(0, -1, -1, -1, ErrorCode.NOT_COORDINATOR)

    error = start_offsets(part)

    assert isinstance(error, KafkaError)
    assert (error.code, error.message) == (ErrorCode.NOT_COORDINATOR, "partition flights-0")


@pytest.mark.parametrize("code", [ErrorCode.NON_EMPTY_GROUP, ErrorCode.GROUP_ID_NOT_FOUND])
def test_offsets_of_an_unsuitable_group_are_not_changed(code: ErrorCode) -> None:
    altered = read_altered_offsets(["g"], alter.AlterShareGroupOffsetsResponse(error_code=code))["g"]
    deleted = read_deleted_offsets(["g"], delete.DeleteShareGroupOffsetsResponse(error_code=code))["g"]

    assert isinstance(altered, KafkaError)
    assert isinstance(deleted, KafkaError)
    assert (altered.code, deleted.code) == (code, code)


def test_each_changed_partition_has_its_code_and_each_failed_topic_its_error() -> None:
    topics = [
        alter.AlterShareGroupOffsetsResponseTopic(
            "flights",
            TOPIC,
            [
                alter.AlterShareGroupOffsetsResponsePartition(0),
                alter.AlterShareGroupOffsetsResponsePartition(1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ],
        )
    ]
    altered = read_altered_offsets(["g"], alter.AlterShareGroupOffsetsResponse(responses=topics))["g"]
    gone = delete.DeleteShareGroupOffsetsResponseTopic("trains", TOPIC, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "unknown")
    fine = delete.DeleteShareGroupOffsetsResponseTopic("flights", TOPIC)
    deleted = read_deleted_offsets(["g"], delete.DeleteShareGroupOffsetsResponse(responses=[fine, gone]))["g"]

    assert altered == {
        TopicPartition("flights", 0): 0,
        TopicPartition("flights", 1): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert isinstance(deleted, dict)
    assert {topic: error.message for topic, error in deleted.items()} == {"trains": "unknown"}
