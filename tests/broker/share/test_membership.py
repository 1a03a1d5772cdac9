"""Members of share groups: what they receive, and how groups are described, listed and deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ErrorCode
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.list_groups import ListGroupsRequest
from ottla.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.broker.share.requests import beat, describe, join, partitions_of, summarize_state, topic_id
from tests.broker.wire import Wire
from tests.patience import eventually


def test_members_share_all_partitions_of_their_topics(wire: Wire) -> None:
    wire.create("t", 3)
    first, second = join(wire, "a"), join(wire, "b")
    assert second > first
    assignments = [partitions_of(beat(wire, name)) for name in ("a", "b")]
    assert {index for each in assignments for index in each[topic_id(wire)]} == {0, 1, 2}


def test_a_member_receives_its_assignment_when_its_states_exist(wire: Wire) -> None:
    wire.create("t")
    joined = beat(wire)
    assert (joined.error_code, joined.member_id, joined.heartbeat_interval_ms) == (0, "a", 200)
    stayed = beat(wire, epoch=joined.member_epoch)
    assert partitions_of(stayed) == {topic_id(wire): [0]}
    assert stayed.heartbeat_interval_ms == 5000
    assert beat(wire, epoch=stayed.member_epoch).assignment is None


def test_a_member_that_leaves_is_not_described_any_more(wire: Wire) -> None:
    wire.create("t")
    epoch = join(wire)
    (member,) = describe(wire).members
    assert (member.member_id, member.member_epoch, list(member.subscribed_topic_names)) == ("a", epoch, ["t"])
    assert [(each.topic_name, list(each.partitions)) for each in member.assignment.topic_partitions] == [("t", [0])]
    assert beat(wire, epoch=-1).member_epoch == -1
    group = describe(wire)
    assert (group.error_code, group.group_state, group.assignor_name, list(group.members)) == (0, "Empty", "simple", [])


@pytest.mark.parametrize(
    ("member", "epoch", "error"),
    [
        ("", 0, ErrorCode.INVALID_REQUEST),
        ("a", -2, ErrorCode.INVALID_REQUEST),
        ("b", 3, ErrorCode.UNKNOWN_MEMBER_ID),
        ("a", 77, ErrorCode.FENCED_MEMBER_EPOCH),
    ],
)
def test_a_wrong_heartbeat_is_rejected_with_its_error(wire: Wire, member: str, epoch: int, error: ErrorCode) -> None:
    wire.create("t")
    join(wire)
    assert beat(wire, member, epoch).error_code == error


def test_without_a_group_only_a_new_member_is_accepted(wire: Wire) -> None:
    assert beat(wire, epoch=5).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert beat(wire, group="").error_code == ErrorCode.INVALID_REQUEST
    unknown = describe(wire, "nothing")
    assert (unknown.error_code, unknown.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert describe(wire, "").error_code == ErrorCode.INVALID_GROUP_ID


def test_groups_are_listed_with_their_kind_and_state(wire: Wire) -> None:
    wire.create("t")
    join(wire)
    every = [(each.group_id, each.protocol_type, each.group_state, each.group_type) for each in groups(wire)]
    assert every == [("g", "share", "Stable", "share")]
    assert [each.group_id for each in groups(wire, types_filter=["Share"])] == ["g"]
    assert groups(wire, types_filter=["consumer"]) == []
    (classic,) = wire.ask(DescribeGroupsRequest(["g"])).groups
    assert (classic.error_code, classic.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")


def groups(wire: Wire, **filters: list[str]) -> list:  # type: ignore[type-arg]
    return list(wire.ask(ListGroupsRequest(**filters)).groups)


def test_a_group_id_belongs_to_one_kind(wire: Wire) -> None:
    wire.create("t")
    join(wire)
    assert wire.ask(consumer_heartbeat("g")).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert wire.ask(consumer_heartbeat("other")).error_code == 0
    assert beat(wire, group="other").error_code == ErrorCode.GROUP_ID_NOT_FOUND


def consumer_heartbeat(group: str) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group, "c", 0, rebalance_timeout_ms=60_000, subscribed_topic_names=["t"], topic_partitions=[]
    )


def test_members_and_states_are_there_after_a_restart(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        epoch = join(wire)
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        assert beat(wire, epoch=epoch).member_epoch == epoch
        assert describe(wire).group_state == "Stable"
        assert summarize_state(wire, topic_id(wire)).error_code == 0


def test_without_the_feature_there_are_no_share_groups(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        off = UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey("share.version", 0, upgrade_type=2)])
        assert wire.ask(off, 1).error_code == 0
        assert beat(wire).error_code == ErrorCode.UNSUPPORTED_VERSION
        assert describe(wire).error_code == ErrorCode.UNSUPPORTED_VERSION
        on = UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey("share.version", 1, upgrade_type=1)])
        assert wire.ask(on, 1).error_code == 0
        wire.create("t")
        assert join(wire) > 0


def test_partitions_of_a_deleted_topic_are_taken_from_its_readers(wire: Wire) -> None:
    wire.create("t")
    wire.create("u")
    epoch = join(wire, topics=["t", "u"])
    gone, kept = topic_id(wire, "t"), topic_id(wire, "u")
    assert wire.ask(DeleteTopicsRequest([DeleteTopicState("t")])).responses[0].error_code == 0
    assert partitions_of(beat(wire, epoch=epoch)) == {kept: [0]}
    eventually(lambda: summarize_state(wire, gone).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def test_only_an_empty_group_is_deleted(wire: Wire) -> None:
    wire.create("t")
    join(wire)
    assert delete(wire) == ErrorCode.NON_EMPTY_GROUP
    beat(wire, epoch=-1)
    assert delete(wire) == 0
    assert describe(wire).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert delete(wire) == ErrorCode.GROUP_ID_NOT_FOUND
    assert summarize_state(wire, topic_id(wire)).start_offset == -1


def delete(wire: Wire) -> int:
    (result,) = wire.ask(DeleteGroupsRequest(["g"])).results
    code: int = result.error_code
    return code
