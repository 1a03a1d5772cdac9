"""The partition and the sender of quorum requests and responses."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from ottla.coordination.quorum import wire
from ottla.coordination.quorum.log_shape import SnapshotId
from ottla.coordination.quorum.observer import METADATA_TOPIC, METADATA_TOPIC_ID
from ottla.coordination.quorum.voters import VoterSet
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from ottla.protocol.schema import ZERO_UUID
from tests.coordination.quorum.test_raft import LOG, ME, OTHER, THIRD

TOLD = wire.ResponseBuilder(4, 2, [])
SNAPSHOT = SnapshotId(40, 4)


def fetch(topic: str = "", topic_id: UUID = ZERO_UUID, *numbers: int, **said: Any) -> FetchRequest:
    partitions = [FetchPartition(number) for number in numbers or (0,)]
    return FetchRequest(topics=[FetchTopic(topic, topic_id, partitions)], **said)


@pytest.mark.parametrize(
    "request_", [fetch(METADATA_TOPIC), fetch("", METADATA_TOPIC_ID), fetch(METADATA_TOPIC, METADATA_TOPIC_ID)]
)
def test_the_metadata_are_known_by_their_name_or_by_their_id(request_: FetchRequest) -> None:
    assert wire.metadata_partition(request_) is request_.topics[0].partitions[0]


@pytest.mark.parametrize(
    "request_",
    [
        fetch("flights"),
        fetch("", UUID(int=77)),
        fetch(METADATA_TOPIC, METADATA_TOPIC_ID, 1),
        fetch(METADATA_TOPIC, METADATA_TOPIC_ID, 0, 1),
        FetchRequest(topics=[]),
        FetchRequest(topics=[*fetch(METADATA_TOPIC).topics, *fetch("flights").topics]),
    ],
)
def test_a_request_for_another_topic_is_not_for_the_metadata(request_: FetchRequest) -> None:
    assert wire.metadata_partition(request_) is None


@pytest.mark.parametrize(
    "message",
    [
        TOLD.vote_response(0, granted=True),
        TOLD.begin_response(0),
        TOLD.end_response(0),
        TOLD.fetch_response(0),
        TOLD.snapshot_response(0, SNAPSHOT, 0),
        wire.vote_request("c", ME, OTHER, 4, LOG, pre_vote=False),
        wire.begin_request("c", 1, OTHER, 4, []),
        wire.end_request("c", 1, 4, [], []),
        wire.fetch_request("c", ME, 4, LOG, 0, 500, 100),
        wire.snapshot_request("c", ME, 4, SNAPSHOT, 0, 100),
    ],
    ids=lambda message: type(message).__name__,
)
def test_each_message_type_names_one_partition(message: Any) -> None:
    assert wire.metadata_partition(message) is not None


@pytest.mark.parametrize(
    ("request_", "id_"),
    [
        (wire.vote_request("c", THIRD, ME, 4, LOG, pre_vote=False), 3),
        (wire.begin_request("c", 2, ME, 4, []), 2),
        (wire.end_request("c", 2, 4, [], []), 2),
        (wire.fetch_request("c", OTHER, 4, LOG, 0, 500, 100), 2),
        (wire.snapshot_request("c", THIRD, 4, SNAPSHOT, 0, 100), 3),
        (fetch(METADATA_TOPIC, replica_id=5), 5),
        (fetch(METADATA_TOPIC, replica_id=-1, replica_state=ReplicaState(6, 0)), 6),
        (fetch(METADATA_TOPIC), -1),
    ],
)
def test_a_request_names_its_sender(request_: Any, id_: int) -> None:
    assert wire.sender_id(request_) == id_


def test_a_request_without_a_partition_has_no_sender() -> None:
    request: Any = wire.begin_request("c", 2, ME, 4, [])
    request.topics = []
    assert wire.sender_id(request) == -1


def test_voter_sets_are_equal_if_all_voters_are_equal() -> None:
    assert VoterSet.of(ME, OTHER) == VoterSet.of(OTHER, ME)
    assert VoterSet.of(ME, OTHER) != VoterSet.of(ME, THIRD)
    assert VoterSet.of(ME) != VoterSet.of(ME._replace(directory_id=UUID(int=9)))
    assert VoterSet.of(ME) != {ME.id: ME}
