"""The offsets of share groups: described with their lag, altered and deleted; and the deletion of groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ErrorCode
from ottla.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
)
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest
from ottla.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
)
from ottla.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponseGroup,
)
from tests.broker.share.consumer import ACCEPT, Sharer, configure, produce_each
from tests.broker.share.requests import beat, describe, join, read_state, topic_id
from tests.broker.wire import Wire
from tests.patience import eventually


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[Wire]:
    """A connection to a broker with the topic `t` of ten records, which group `g` reads from the start."""
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        configure(wire, {"share.auto.offset.reset": "earliest"})
        join(wire)
        produce_each(wire, 10)
        yield wire


def described(wire: Wire, *topics: tuple[str, Sequence[int]]) -> DescribeShareGroupOffsetsResponseGroup:
    named = [DescribeShareGroupOffsetsRequestTopic(name, indexes) for name, indexes in topics] or None
    request = DescribeShareGroupOffsetsRequest([DescribeShareGroupOffsetsRequestGroup("g", named)])
    (group,) = wire.ask(request).groups
    found: DescribeShareGroupOffsetsResponseGroup = group
    return found


def offset_and_lag(wire: Wire) -> tuple[int, int]:
    (topic,) = described(wire).topics
    (found,) = topic.partitions
    assert found.error_code == 0
    return found.start_offset, found.lag


def alter(wire: Wire, offset: int, name: str = "t", partition: int = 0) -> AlterShareGroupOffsetsResponse:
    part = AlterShareGroupOffsetsRequestPartition(partition, offset)
    request = AlterShareGroupOffsetsRequest("g", [AlterShareGroupOffsetsRequestTopic(name, [part])])
    response: AlterShareGroupOffsetsResponse = wire.ask(request)
    return response


def delete(wire: Wire, *names: str) -> DeleteShareGroupOffsetsResponse:
    topics = [DeleteShareGroupOffsetsRequestTopic(name) for name in names]
    response: DeleteShareGroupOffsetsResponse = wire.ask(DeleteShareGroupOffsetsRequest("g", topics))
    return response


def delete_group(wire: Wire) -> int:
    (result,) = wire.ask(DeleteGroupsRequest(["g"])).results
    code: int = result.error_code
    return code


def consume(wire: Wire, *accepted: tuple[int, int]) -> Sharer:
    sharer = Sharer(wire)
    assert sharer.fetch(max_wait_ms=5000).ranges
    assert sharer.acknowledge(*((first, last, ACCEPT) for first, last in accepted)) == 0
    return sharer


def test_the_lag_counts_what_is_still_to_be_delivered(wire: Wire) -> None:
    assert offset_and_lag(wire) == (-1, -1)
    consume(wire, (0, 1), (5, 6))
    assert offset_and_lag(wire) == (0, 6)


def test_unknown_topics_and_groups_are_errors(wire: Wire) -> None:
    codes = {
        (topic.topic_name, each.partition_index): each.error_code
        for topic in described(wire, ("t", [0, 4]), ("u", [0])).topics
        for each in topic.partitions
    }
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes == {("t", 0): 0, ("t", 4): unknown, ("u", 0): unknown}
    (missing,) = wire.ask(DescribeShareGroupOffsetsRequest([DescribeShareGroupOffsetsRequestGroup("x", None)])).groups
    assert missing.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_are_altered_without_members_only(wire: Wire) -> None:
    sharer = consume(wire, (0, 9))
    assert alter(wire, 3).error_code == ErrorCode.NON_EMPTY_GROUP
    sharer.close()
    beat(wire, epoch=-1)
    response = alter(wire, 3)
    assert (response.error_code, response.responses[0].partitions[0].error_code) == (0, 0)
    assert offset_and_lag(wire) == (3, 7)
    join(wire, "b")
    again = Sharer(wire, "b")
    assert eventually_fetched(again) == [(3, 9, 1)]


def eventually_fetched(sharer: Sharer) -> list[tuple[int, int, int]]:
    """Fetch until there are records; the leader has to read the altered state first."""
    found: list[tuple[int, int, int]] = []

    def has_records() -> bool:
        found.extend(sharer.fetch(max_wait_ms=200).ranges)
        return bool(found)

    eventually(has_records)
    return found


def test_an_alteration_of_an_unknown_partition_is_an_error(wire: Wire) -> None:
    beat(wire, epoch=-1)
    (topic,) = alter(wire, 3, "u").responses
    assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (topic,) = alter(wire, 3, partition=4).responses
    assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_deleted_offsets_are_unknown_and_start_again(wire: Wire) -> None:
    consume(wire, (0, 9)).close()
    assert delete(wire, "t").error_code == ErrorCode.NON_EMPTY_GROUP
    beat(wire, epoch=-1)
    response = delete(wire, "t", "u")
    assert [each.error_code for each in response.responses] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert read_state(wire, topic_id(wire)).error_code == ErrorCode.INVALID_REQUEST
    assert list(described(wire).topics) == []
    join(wire, "b")
    assert eventually_fetched(Sharer(wire, "b")) == [(0, 9, 1)]


def test_a_deleted_group_leaves_no_states(wire: Wire) -> None:
    consume(wire, (0, 3)).close()
    assert delete_group(wire) == ErrorCode.NON_EMPTY_GROUP
    beat(wire, epoch=-1)
    assert delete_group(wire) == 0
    assert describe(wire).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert read_state(wire, topic_id(wire)).error_code == ErrorCode.INVALID_REQUEST
    assert delete_group(wire) == ErrorCode.GROUP_ID_NOT_FOUND
