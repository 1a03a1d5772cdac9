"""The permissions of a Kafka Streams application: READ on its group, DESCRIBE on its topics, CREATE on the internal ones.

`tests/broker/test_permissions.py` has every API with each permission; here are the topics that a heartbeat creates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ottla.errors import ErrorCode
from ottla.protocol.acl import CLUSTER_NAME, Operation, PatternType, PermissionType, ResourceType
from ottla.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from ottla.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TopicInfo,
    Topology,
)
from ottla.protocol.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
)
from tests.broker.every_api import KNOWN, SampleRequest
from tests.broker.in_process_broker import House
from tests.broker.serving import decide

READ_GROUP = (Operation.READ, ResourceType.GROUP, "app")
DESCRIBE_GROUP = (Operation.DESCRIBE, ResourceType.GROUP, "app")
DESCRIBE_TOPICS = (Operation.DESCRIBE, ResourceType.TOPIC, "*")


def count(name: str) -> Topology:
    """Return the topology of a word count with internal topics of its own."""
    log, rep = f"{name}-log", f"{name}-rep"
    return Topology(
        0,
        [
            Subtopology("0", [KNOWN], [], [], [rep]),
            Subtopology("1", [], [], [TopicInfo(log, 0, 1)], [], [TopicInfo(rep, 0, 1)]),
        ],
    )


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    house = House()
    yield house
    house.close()


def permit(house: House, user: str, *rules: tuple[Operation, ResourceType, str]) -> None:
    """Allow operations on resources with these names."""
    created = [
        AclCreation(kind, name, PatternType.LITERAL, f"User:{user}", "*", operation, PermissionType.ALLOW)
        for operation, kind, name in rules
    ]
    decide(house.server, CreateAclsRequest(created), 3)


def join(house: House, user: str, group: str = "app") -> StreamsGroupHeartbeatResponse:
    fields: dict[str, Any] = {"rebalance_timeout_ms": 5000, "topology": count(group), "process_id": user}
    request = StreamsGroupHeartbeatRequest(group, user, 0, **fields)
    response: StreamsGroupHeartbeatResponse = house.ask(SampleRequest(request, 1), user)
    return response


def details(response: StreamsGroupHeartbeatResponse) -> str:
    return " ".join(each.status_detail for each in response.status or ())


@pytest.mark.parametrize(
    ("user", "rules", "code"),
    [
        ("without-group", (DESCRIBE_TOPICS,), ErrorCode.GROUP_AUTHORIZATION_FAILED),
        ("without-topics", (READ_GROUP,), ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (
            "with-some-topics",
            (READ_GROUP, (Operation.DESCRIBE, ResourceType.TOPIC, KNOWN)),
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ),
    ],
)
def test_a_member_needs_its_group_and_all_topics_of_its_topology(
    house: House, user: str, rules: tuple[tuple[Operation, ResourceType, str], ...], code: int
) -> None:
    permit(house, user, *rules)
    assert join(house, user).error_code == code


@pytest.mark.parametrize(
    ("group", "creates", "denied"),
    [
        ("none", (), ["none-log", "none-rep"]),
        ("one", ((Operation.CREATE, ResourceType.TOPIC, "one-rep"),), ["one-log"]),
        ("both", tuple((Operation.CREATE, ResourceType.TOPIC, name) for name in ("both-rep", "both-log")), []),
        ("any", ((Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME),), []),
    ],
)
def test_internal_topics_are_created_only_with_the_permission_to_create_each(
    house: House, group: str, creates: tuple[tuple[Operation, ResourceType, str], ...], denied: list[str]
) -> None:
    user = f"creates-{group}"
    permit(house, user, (Operation.READ, ResourceType.GROUP, group), DESCRIBE_TOPICS, *creates)
    response = join(house, user, group)
    assert response.error_code == 0
    missing, _, refused = details(response).partition("CREATE is not allowed on")
    assert all(name in missing for name in (f"{group}-log", f"{group}-rep"))
    assert [name for name in (f"{group}-log", f"{group}-rep") if name in refused] == denied


def test_a_description_of_the_topology_needs_the_permission_of_a_member(house: House) -> None:
    request = SampleRequest(StreamsGroupTopologyDescriptionUpdateRequest("app", "anyone", 0), 0)
    permit(house, "pushes", READ_GROUP)
    assert house.ask(request, "stranger").error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert house.ask(request, "pushes").error_code != ErrorCode.GROUP_AUTHORIZATION_FAILED


def test_a_group_is_described_only_with_all_topics_of_its_topology(house: House) -> None:
    permit(house, "describes", DESCRIBE_GROUP)
    permit(house, "describes-all", DESCRIBE_GROUP, DESCRIBE_TOPICS)
    permit(house, "member", READ_GROUP, DESCRIBE_TOPICS)
    join(house, "member")
    request = SampleRequest(StreamsGroupDescribeRequest(["app"]), 1)
    codes = [house.ask(request, user).groups[0].error_code for user in ("stranger", "describes", "describes-all")]
    assert codes == [ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0]
