"""ListOffsets: ends, starts and times."""

from __future__ import annotations

import pytest

from ottla.errors import ErrorCode
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.broker.wire import Wire, batch, produce


def list_offset(
    wire: Wire, timestamp: int, version: int = 11, topic: str = "t", epoch: int = -1
) -> ListOffsetsPartitionResponse:
    wanted = ListOffsetsPartition(0, epoch, timestamp)
    response = wire.ask(ListOffsetsRequest(-1, topics=[ListOffsetsTopic(topic, [wanted])]), version)
    answer: ListOffsetsPartitionResponse = response.topics[0].partitions[0]
    return answer


@pytest.fixture
def filled(wire: Wire) -> Wire:
    """Three records at times 1000, 3000 and 2000."""
    wire.create("t")
    for timestamp in (1000, 3000, 2000):
        wire.ask(produce("t", batch([b"x"], timestamp=timestamp)), 9)
    return wire


@pytest.mark.parametrize("version", range(1, 12))
def test_start_and_end_offsets_are_returned_in_every_version(filled: Wire, version: int) -> None:
    latest, earliest = list_offset(filled, -1, version), list_offset(filled, -2, version)
    assert (latest.error_code, latest.offset, latest.timestamp) == (0, 3, -1)
    assert (earliest.error_code, earliest.offset, earliest.timestamp) == (0, 0, -1)
    assert latest.leader_epoch == (0 if version >= 4 else -1)


@pytest.mark.parametrize(
    ("timestamp", "offset", "found"), [(0, 0, 1000), (1000, 0, 1000), (1001, 1, 3000), (3001, -1, -1)]
)
def test_a_timestamp_finds_the_first_record_that_is_not_earlier(
    filled: Wire, timestamp: int, offset: int, found: int
) -> None:
    answer = list_offset(filled, timestamp)
    assert (answer.offset, answer.timestamp) == (offset, found)


def test_the_largest_timestamp_has_an_offset(filled: Wire) -> None:
    answer = list_offset(filled, -3)
    assert (answer.offset, answer.timestamp) == (1, 3000)


def test_an_empty_partition_starts_and_ends_at_0_and_has_no_timestamps(wire: Wire) -> None:
    wire.create("t")
    assert [list_offset(wire, timestamp).offset for timestamp in (-1, -2, -3, -4, -5, -6, 5)] == [
        0,
        0,
        -1,
        0,
        -1,
        -1,
        -1,
    ]


@pytest.mark.parametrize(("timestamp", "version"), [(-3, 6), (-4, 7), (-5, 8), (-6, 10), (-7, 11)])
def test_a_special_timestamp_before_its_version_is_unsupported(filled: Wire, timestamp: int, version: int) -> None:
    assert list_offset(filled, timestamp, version).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_unknown_topics_and_epochs_are_errors(filled: Wire) -> None:
    assert list_offset(filled, -1, topic="nowhere").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert list_offset(filled, -1, epoch=4).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_partition_named_twice_is_an_error(filled: Wire) -> None:
    twice = [ListOffsetsPartition(0, -1, -1), ListOffsetsPartition(0, -1, -2), ListOffsetsPartition(1, -1, -1)]
    response = filled.ask(ListOffsetsRequest(-1, topics=[ListOffsetsTopic("t", twice)]), 7)
    codes = [answer.error_code for answer in response.topics[0].partitions]
    assert codes == [ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_special_timestamp_unknown_to_the_version_is_rejected_for_any_partition(filled: Wire) -> None:
    assert list_offset(filled, -3, 6, topic="absent").error_code == ErrorCode.UNSUPPORTED_VERSION
    assert list_offset(filled, -3, 7, topic="absent").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
