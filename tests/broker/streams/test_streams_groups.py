"""Streams groups on the wire: internal topics, tasks, descriptions, listings, deletion."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.client.admin import Admin, StreamsSubtopology
from ottla.errors import ErrorCode, KafkaError
from ottla.model import TopicPartition
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest
from ottla.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.protocol.messages.list_groups import ListGroupsRequest
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.messages.streams_group_describe import DescribedGroup, StreamsGroupDescribeRequest
from ottla.protocol.messages.streams_group_heartbeat import (
    KeyValue,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TopicInfo,
    Topology,
)
from ottla.protocol.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    StreamsGroupTopologyDescriptionUpdateResponse,
    TopologyDescription,
    TopologyDescriptionGlobalStore,
    TopologyDescriptionNode,
    TopologyDescriptionSubtopology,
)
from ottla.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.broker.wire import Wire
from tests.patience import eventually

SETTINGS: dict[str, Any] = {
    "group_streams_initial_rebalance_delay_ms": 0,
    "group_streams_assignment_interval_ms": 0,
}
GROUP_RESOURCE, TOPIC_RESOURCE = 32, 2
COUNT = Topology(
    0,
    [
        Subtopology("0", ["in"], [], [], ["rep"]),
        Subtopology(
            "1",
            [],
            [],
            [TopicInfo("log", 0, 1, [KeyValue("cleanup.policy", "compact")])],
            [],
            [TopicInfo("rep", 0, 1, [KeyValue("retention.ms", "-1")])],
        ),
    ],
)


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[Wire]:
    with Broker(tmp_path, **SETTINGS) as broker, Wire(broker.bootstrap_servers) as wire:
        yield wire


def beat(wire: Wire, member: str = "a", epoch: int = 0, **more: Any) -> StreamsGroupHeartbeatResponse:
    """Send a heartbeat; one that joins has the topology of a word count."""
    joining = {"rebalance_timeout_ms": 60_000, "topology": COUNT, "process_id": member} if epoch == 0 else {}
    response: StreamsGroupHeartbeatResponse = wire.ask(
        StreamsGroupHeartbeatRequest("g", member, epoch, **{**joining, **more}), 1
    )
    return response


def join(wire: Wire, member: str = "a") -> StreamsGroupHeartbeatResponse:
    """Join and send heartbeats until the internal topics exist and the member has tasks."""
    response = beat(wire, member)

    def has_tasks() -> bool:
        nonlocal response
        assert response.error_code == 0, response.error_message
        if response.active_tasks:
            return True
        response = beat(wire, member, response.member_epoch)
        return False

    eventually(has_tasks)
    return response


def tasks_of(response: StreamsGroupHeartbeatResponse) -> dict[str, list[int]]:
    return {each.subtopology_id: list(each.partitions) for each in response.active_tasks or ()}


def describe(wire: Wire, group: str = "g") -> DescribedGroup:
    (found,) = wire.ask(StreamsGroupDescribeRequest([group], False, True), 1).groups
    described: DescribedGroup = found
    return described


def test_internal_topics_are_created_with_the_configs_of_the_application(wire: Wire) -> None:
    wire.create("in", 3)

    first = beat(wire)
    joined = join(wire)

    assert [each.status_code for each in first.status or ()] == [3]
    assert tasks_of(joined) == {"0": [0, 1, 2], "1": [0, 1, 2]}
    topics = wire.ask(MetadataRequest([MetadataRequestTopic(name="rep"), MetadataRequestTopic(name="log")])).topics
    assert [len(each.partitions) for each in topics] == [3, 3]
    assert config_of(wire, TOPIC_RESOURCE, "log", "cleanup.policy") == "compact"


def config_of(wire: Wire, kind: int, name: str, config: str) -> str | None:
    (found,) = wire.ask(DescribeConfigsRequest([DescribeConfigsResource(kind, name, [config])])).results
    value: str | None = found.configs[0].value
    return value


def test_a_group_is_described_with_its_topology_and_tasks(wire: Wire) -> None:
    wire.create("in", 2)
    before = describe(wire)
    epoch = join(wire).member_epoch

    group = describe(wire)

    assert (before.error_code, before.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert (group.error_code, group.group_state, group.assignor_name) == (0, "Stable", "sticky")
    assert group.topology_description_status == 1
    assert group.topology is not None
    assert [
        (each.subtopology_id, list(each.source_topics), [one.partitions for one in each.repartition_source_topics])
        for each in group.topology.subtopologies or ()
    ] == [("0", ["in"], []), ("1", [], [2])]
    (member,) = group.members
    assert (member.member_id, member.member_epoch, member.process_id) == ("a", epoch, "a")
    assert member.assignment == member.target_assignment


def test_groups_are_listed_as_streams_groups_and_deleted_when_empty(wire: Wire) -> None:
    wire.create("in")
    join(wire)

    listed = [(each.group_id, each.protocol_type, each.group_state, each.group_type) for each in groups(wire)]
    refused = delete(wire)
    (classic,) = wire.ask(DescribeGroupsRequest(["g"])).groups
    beat(wire, epoch=-1)

    assert listed == [("g", "streams", "Stable", "streams")]
    assert [each.group_id for each in groups(wire, types_filter=["Streams"])] == ["g"]
    assert classic.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert (refused, delete(wire), groups(wire)) == (ErrorCode.NON_EMPTY_GROUP, 0, [])


def groups(wire: Wire, **filters: list[str]) -> list[Any]:
    return list(wire.ask(ListGroupsRequest(**filters)).groups)


def delete(wire: Wire) -> int:
    (result,) = wire.ask(DeleteGroupsRequest(["g"])).results
    code: int = result.error_code
    return code


def test_members_and_tasks_are_there_after_a_restart(tmp_path: Path) -> None:
    with Broker(tmp_path, **SETTINGS) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("in")
        epoch = join(wire).member_epoch
    with Broker(tmp_path, **SETTINGS) as broker, Wire(broker.bootstrap_servers) as wire:
        again = beat(wire, epoch=epoch)
        state = describe(wire).group_state

    assert (again.error_code, again.member_epoch, again.active_tasks) == (0, epoch, None)
    assert state == "Stable"


def test_topologies_with_internal_or_invalid_topics_are_rejected(wire: Wire) -> None:
    for name in ("__consumer_offsets", "in/out"):
        answer = beat(wire, topology=Topology(0, [Subtopology("0", [name])]))
        assert answer.error_code == ErrorCode.STREAMS_INVALID_TOPOLOGY


def test_a_topic_that_cannot_be_created_is_named_with_the_reason(wire: Wire) -> None:
    wire.create("in")
    wrong = Topology(0, [Subtopology("0", ["in"], [], [TopicInfo("log", 0, 9)])])

    def details() -> str:
        return " ".join(each.status_detail for each in beat(wire, topology=wrong).status or ())

    eventually(lambda: "INVALID_REPLICATION_FACTOR" in details())


def test_configs_of_a_group_override_the_settings_of_the_broker(wire: Wire) -> None:
    wire.create("in")
    change = AlterConfigsResource(
        GROUP_RESOURCE, "g", [AlterableConfig("streams.heartbeat.interval.ms", 0, "6000"), AlterableConfig("streams.num.standby.replicas", 0, "1")]
    )  # fmt: skip
    too_many = AlterConfigsResource(GROUP_RESOURCE, "g", [AlterableConfig("streams.num.standby.replicas", 0, "3")])

    accepted, rejected = (wire.ask(IncrementalAlterConfigsRequest([each])).responses[0] for each in (change, too_many))
    epoch = join(wire).member_epoch

    assert (accepted.error_code, rejected.error_code) == (0, ErrorCode.INVALID_CONFIG)
    assert "group.streams.max.standby.replicas" in rejected.error_message
    assert config_of(wire, GROUP_RESOURCE, "g", "streams.num.standby.replicas") == "1"
    assert beat(wire, epoch=epoch).heartbeat_interval_ms == 6000
    standby = join_second(wire, epoch)
    assert {each.subtopology_id for each in standby.standby_tasks or ()} == {"1"}


def join_second(wire: Wire, epoch: int) -> StreamsGroupHeartbeatResponse:
    return beat(wire, "b")


def test_our_admin_describes_and_deletes_a_streams_group(tmp_path: Path) -> None:
    with Broker(tmp_path, **SETTINGS) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("in", 2)
        epoch = join(wire).member_epoch
        with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            group = admin.describe_streams_groups(["g"])["g"]
            beat(wire, epoch=-1)
            admin.delete_streams_groups(["g"])
            left = admin.list_groups()

    (member,) = group.members
    assert (group.state, group.topology_epoch, member.member_epoch) == ("Stable", 0, epoch)
    assert member.assignment.active == (("0", 0), ("0", 1), ("1", 0), ("1", 1))
    assert group.subtopologies == (
        StreamsSubtopology("0", ("in",), (), ("rep",)),
        StreamsSubtopology("1", (), ("rep",), (), ("log",)),
    )
    assert left == []


def test_our_admin_lists_sets_and_deletes_the_offsets_of_a_streams_group(tmp_path: Path) -> None:
    place = TopicPartition("in", 1)
    with Broker(tmp_path, **SETTINGS) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("in", 2)
        join(wire)
        with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            with pytest.raises(KafkaError) as in_use:
                admin.alter_streams_group_offsets("g", {place: 5})
            with pytest.raises(KafkaError) as subscribed:
                admin.delete_streams_group_offsets("g", [place])
            beat(wire, epoch=-1)
            admin.alter_streams_group_offsets("g", {place: 5, TopicPartition("rep", 0): 7})
            admin.delete_streams_group_offsets("g", [TopicPartition("rep", 0)])
            stored = admin.list_streams_group_offsets("g")
            listed = admin.list_groups()

    assert in_use.value.code == ErrorCode.UNKNOWN_MEMBER_ID
    assert subscribed.value.code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert {each: at.offset for each, at in stored.items()} == {place: 5}
    assert [(each.group_id, each.type) for each in listed] == [("g", "Streams")]


DESCRIPTION = TopologyDescription(
    [
        TopologyDescriptionSubtopology(
            "0",
            [
                TopologyDescriptionNode("source", 1, ["in"], None, [], ["count"]),
                TopologyDescriptionNode("count", 2, [], None, ["counts"], ["sink"]),
                TopologyDescriptionNode("sink", 3, [], "out", [], []),
            ],
        )
    ],
    [
        TopologyDescriptionGlobalStore(
            TopologyDescriptionNode("all", 1, ["everything"], None, [], ["keep"]),
            TopologyDescriptionNode("keep", 2, [], None, ["table"], []),
        )
    ],
)


def push(wire: Wire, **changes: Any) -> StreamsGroupTopologyDescriptionUpdateResponse:
    """Send the description of the topology of member `a`."""
    fields = {"group_id": "g", "member_id": "a", "topology_epoch": 0, "topology_description": DESCRIPTION}
    response: StreamsGroupTopologyDescriptionUpdateResponse = wire.ask(
        StreamsGroupTopologyDescriptionUpdateRequest(**{**fields, **changes}), 0
    )
    return response


@pytest.fixture
def describing(tmp_path: Path) -> Iterator[Wire]:
    """A broker that stores descriptions of topologies."""
    settings = {**SETTINGS, "group_streams_topology_description_plugin_class": "memory"}
    with Broker(tmp_path, **settings) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("in")
        yield wire


def test_by_default_descriptions_of_topologies_are_neither_requested_nor_stored(wire: Wire) -> None:
    wire.create("in")
    first = beat(wire)

    assert not first.topology_description_required
    assert push(wire).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert describe(wire).topology_description_status == 1


def test_a_heartbeat_requests_a_description_once_and_a_description_shows_it(describing: Wire) -> None:
    first, second = beat(describing), beat(describing, "b")
    before = describe(describing)
    stored = push(describing)
    after = describe(describing)
    unasked = describing.ask(StreamsGroupDescribeRequest(["g"]), 1).groups[0]
    later = beat(describing, "c")

    assert (first.topology_description_required, second.topology_description_required) == (True, False)
    assert (before.topology_description_status, before.topology_description) == (1, None)
    assert stored.error_code == 0, stored.error_message
    assert (after.topology_description_status, after.topology_description) == (3, DESCRIPTION)
    assert (unasked.topology_description_status, unasked.topology_description) == (0, None)
    assert not later.topology_description_required


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"member_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"group_id": "other"}, ErrorCode.GROUP_ID_NOT_FOUND),
        ({"member_id": "other"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"topology_epoch": 42}, ErrorCode.INVALID_REQUEST),
        (
            {
                "topology_description": TopologyDescription(
                    [TopologyDescriptionSubtopology("0", [TopologyDescriptionNode("x", 4)])]
                )
            },
            ErrorCode.INVALID_REQUEST,
        ),
        (
            {"topology_description": TopologyDescription((), [TopologyDescriptionGlobalStore()])},
            ErrorCode.INVALID_REQUEST,
        ),
    ],
    ids=[
        "no group id",
        "no member id",
        "unknown group",
        "unknown member",
        "other epoch",
        "unknown type",
        "global store",
    ],
)
def test_a_description_that_is_not_of_the_group_is_rejected(
    describing: Wire, changes: dict[str, Any], code: int
) -> None:
    beat(describing)

    answer = push(describing, **changes)

    assert answer.error_code == code
    assert answer.error_message
    assert describe(describing).topology_description_status == 1


def test_a_description_that_is_too_large_is_rejected_and_not_requested_again(describing: Wire) -> None:
    nodes = [TopologyDescriptionNode(f"{number:0200}", 2) for number in range(2_000)]

    beat(describing)

    refused = push(describing, topology_description=TopologyDescription([TopologyDescriptionSubtopology("0", nodes)]))
    later = beat(describing, "b")

    assert refused.error_code == ErrorCode.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED
    assert "at most 524288 are stored" in str(refused.error_message)
    assert not later.topology_description_required


def test_a_group_that_is_deleted_and_created_again_has_no_description(describing: Wire) -> None:
    beat(describing)
    assert push(describing).error_code == 0
    beat(describing, epoch=-1)
    (deleted,) = describing.ask(DeleteGroupsRequest(["g"]), 3).results
    again = beat(describing)

    assert (deleted.error_code, deleted.error_message) == (0, None)
    assert again.topology_description_required
    assert describe(describing).topology_description_status == 1


def test_without_the_feature_there_are_no_streams_groups(wire: Wire) -> None:
    off = UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey("streams.version", 0, upgrade_type=2)])
    assert wire.ask(off, 1).error_code == 0

    answers = [
        beat(wire).error_code,
        describe(wire).error_code,
        wire.ask(StreamsGroupTopologyDescriptionUpdateRequest("g", "a", 0), 0).error_code,
    ]

    assert answers == [ErrorCode.UNSUPPORTED_VERSION] * 3
