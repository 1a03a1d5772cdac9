"""Consumer groups (KIP-848) over the network: responses to members, and descriptions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.broker.settings.config import read_config
from ottla.errors import ConfigError, ErrorCode
from ottla.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest, DescribedGroup
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest
from ottla.protocol.messages.list_groups import ListGroupsRequest
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from ottla.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.broker.membership import Membership, describe
from tests.broker.wire import Wire
from tests.patience import eventually


def beat(
    wire: Wire, member: str = "a", epoch: int = 0, version: int = 1, **fields: Any
) -> ConsumerGroupHeartbeatResponse:
    """Send a heartbeat; a joining member sends all fields."""
    if epoch == 0:
        fields = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["t"], "topic_partitions": [], **fields}
    request = ConsumerGroupHeartbeatRequest("g", member, epoch, **fields)
    answer: ConsumerGroupHeartbeatResponse = wire.ask(request, version)
    return answer


def describe_group(wire: Wire, group: str = "g", version: int = 1) -> DescribedGroup:
    (found,) = wire.ask(ConsumerGroupDescribeRequest([group]), version).groups
    described: DescribedGroup = found
    return described


@pytest.mark.parametrize("version", [0, 1])
def test_a_member_joins_stays_and_leaves_in_every_version(wire: Wire, version: int) -> None:
    wire.create("t", 3)
    joined = beat(wire, "a" if version else "", version=version)
    assert (joined.error_code, joined.member_epoch, joined.heartbeat_interval_ms) == (0, 2, 500)
    assert joined.member_id
    assert joined.assignment is not None
    assert [list(each.partitions) for each in joined.assignment.topic_partitions] == [[0, 1, 2]]
    stayed = beat(wire, joined.member_id, 2, version)
    assert (stayed.error_code, stayed.member_epoch, stayed.assignment) == (0, 2, None)
    assert beat(wire, joined.member_id, -1, version).member_epoch == -1
    assert beat(wire, joined.member_id, 2, version).error_code == ErrorCode.UNKNOWN_MEMBER_ID


WRONG = {
    "MemberId can't be empty.": {"member": ""},
    "an instance id is not empty: leave it out, or name it": {"instance_id": ""},
    "a rack is not empty: leave it out, or name it": {"rack_id": ""},
    "a joining member must send its rebalance timeout": {"rebalance_timeout_ms": -1},
    "a joining member has no partitions: send an empty list of them": {"topic_partitions": [TopicPartitions()]},
    "a joining member must subscribe to topics by name, or by a regular expression": {"subscribed_topic_names": None},
    "only a member with an instance id can leave for a while": {"epoch": -2},
    "a member epoch is -2 (temporarily leaving), -1 (leaving), 0 (joining) or above": {"epoch": -3},
}


@pytest.mark.parametrize("text", WRONG)
def test_an_invalid_heartbeat_is_rejected_with_the_reason(wire: Wire, text: str) -> None:
    answer = beat(wire, **WRONG[text])  # type: ignore[arg-type]
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REQUEST, text)


def test_a_group_without_a_name_is_refused(wire: Wire) -> None:
    answer = wire.ask(ConsumerGroupHeartbeatRequest("", "a", 1))
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REQUEST, "GroupId can't be empty.")


def test_a_group_is_described_with_current_and_target_assignments(wire: Wire) -> None:
    wire.create("t", 2)
    beat(wire, "a", instance_id="i", rack_id="r")
    beat(wire, "b", subscribed_topic_regex="t.*")
    group = describe_group(wire)
    assert (group.error_code, group.group_state, group.assignor_name) == (0, "Reconciling", "uniform")
    assert (group.group_epoch, group.assignment_epoch) == (3, 3)
    first, second = group.members
    assert (first.member_id, first.instance_id, first.rack_id, first.member_epoch) == ("a", "i", "r", 2)
    assert (first.client_id, first.client_host, first.member_type) == ("wire", "/127.0.0.1", 1)
    assert [(each.topic_name, list(each.partitions)) for each in first.assignment.topic_partitions] == [("t", [0, 1])]
    assert [(each.topic_name, list(each.partitions)) for each in first.target_assignment.topic_partitions] == [
        ("t", [0])
    ]
    assert (second.subscribed_topic_names, second.subscribed_topic_regex) == (["t"], "t.*")


@pytest.mark.parametrize(("topics", "epochs"), [(["t"], [(2, 2), (3, 2), (4, 4)]), ([], [(1, 1), (2, 1), (2, 2)])])
def test_the_epochs_of_a_group_are_those_of_kafka(wire: Wire, topics: list[str], epochs: list[tuple[int, int]]) -> None:
    wire.create("t", 1)

    def seen() -> tuple[int, int]:
        group = describe_group(wire)
        return group.group_epoch, group.assignment_epoch

    joined = beat(wire, subscribed_topic_names=topics)
    first = seen()
    beat(wire, epoch=-1)
    left = seen()
    beat(wire, subscribed_topic_names=topics)
    assert [first, left, seen()] == epochs
    assert joined.member_epoch == first[0]


def test_each_kind_of_group_is_described_by_its_own_request(wire: Wire, broker: Broker) -> None:
    beat(wire)
    with Membership(broker.bootstrap_servers, group="old") as member:
        member.join()
        assert describe(wire, "g", 6).error_message == "group g is of another protocol"
        assert describe(wire, "g", 5).group_state == "Dead"
        assert describe_group(wire, "old").error_message == "group old is of another protocol"
        assert describe_group(wire, "none").error_message == "there is no group none"
        kinds = {each.group_id: each.group_type for each in wire.ask(ListGroupsRequest(), 5).groups}
        assert kinds == {"g": "consumer", "old": "classic"}
        only = wire.ask(ListGroupsRequest(types_filter=["Consumer"]), 5).groups
        assert [(each.group_id, each.group_state, each.protocol_type) for each in only] == [("g", "Stable", "consumer")]
        assert wire.ask(ListGroupsRequest(["assigning"]), 5).groups == []


def test_offsets_are_stored_for_members_in_their_epoch(wire: Wire) -> None:
    wire.create("t", 1)
    beat(wire)

    def commit(epoch: int, version: int = 9) -> int:
        topics = [OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(0, 5)])]
        code: int = (
            wire.ask(OffsetCommitRequest("g", epoch, "a", topics=topics), version).topics[0].partitions[0].error_code
        )
        return code

    def fetch(member: str | None, epoch: int) -> int:
        groups = [OffsetFetchRequestGroup("g", member, epoch, None)]
        code: int = wire.ask(OffsetFetchRequest(groups=groups), 9).groups[0].error_code
        return code

    assert [commit(2), commit(7), commit(2, 8)] == [0, ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNSUPPORTED_VERSION]
    assert [fetch("a", 2), fetch("a", 7), fetch("b", 2), fetch(None, -1)] == [
        0,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.UNKNOWN_MEMBER_ID,
        0,
    ]


@pytest.mark.behaviour("C15")
def test_a_created_or_extended_topic_is_assigned_with_the_next_heartbeat(wire: Wire) -> None:
    assert beat(wire).assignment is not None
    wire.create("t", 1)
    first = beat(wire, epoch=2)
    assert (first.member_epoch, first.assignment is not None) == (3, True)
    assert beat(wire, epoch=3).member_epoch == 3


def test_a_silent_member_is_removed_in_real_time() -> None:
    settings = {"group_consumer_session_timeout_ms": 200, "group_consumer_heartbeat_interval_ms": 50}
    with Broker(**settings) as broker, Wire(broker.bootstrap_servers) as wire:  # type: ignore[arg-type]
        wire.create("t", 1)
        beat(wire)
        eventually(lambda: describe_group(wire).group_state == "Empty")
        assert wire.ask(DeleteGroupsRequest(["g"]), 2).results[0].error_code == 0


def test_a_group_is_restored_after_the_broker_was_killed(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", 2)
        beat(wire, "a", instance_id="i")
        beat(wire, "b")
        before = describe_group(wire)
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        assert describe_group(wire) == before
        assert beat(wire, "a", 2, instance_id="i").error_code == 0


@pytest.fixture
def without_feature() -> Iterator[Wire]:
    with Broker() as broker, Wire(broker.bootstrap_servers) as wire:
        update = UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey("group.version", 0, upgrade_type=2)])
        assert wire.ask(update, 1).error_code == 0
        yield wire


def test_a_cluster_without_the_feature_rejects_consumer_group_heartbeats(without_feature: Wire) -> None:
    assert beat(without_feature).error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"group.consumer.session.timeout.ms": 10}, "group.consumer.session.timeout.ms = 10: must be between"),
        ({"group.consumer.heartbeat.interval.ms": 99_000}, "group.consumer.heartbeat.interval.ms = 99000"),
        ({"group.consumer.assignors": "sticky"}, "must name some of uniform, range"),
        ({"group.consumer.migration.policy": "sideways"}, "group.consumer.migration.policy"),
        ({"group.consumer.min.heartbeat.interval.ms": 1, "group.consumer.min.session.timeout.ms": 1,
          "group.consumer.session.timeout.ms": 9, "group.consumer.heartbeat.interval.ms": 9}, "must be below"),
    ],
)  # fmt: skip
def test_contradictory_group_settings_are_rejected(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said.replace(".", r"\.")):
        read_config(settings)


def test_java_class_names_of_assignors_are_accepted() -> None:
    config = read_config(
        {"group.consumer.assignors": "org.apache.kafka.coordinator.group.assignor.RangeAssignor, uniform"}
    )
    assert config.consumer_assignors == ("range", "uniform")
