"""Every API by users with one permission, or all but one: the table of permissions is complete and exact."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.broker.apis.permissions import CODES, PERMISSIONS, Scope
from ottla.errors import ErrorCode
from ottla.protocol.acl import Operation, ResourceType
from ottla.protocol.apis import SERVED
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.protocol.schema import replace
from tests.broker.every_api import KNOWN, SampleRequest, codes_in, every_api, names_in, operations_in
from tests.broker.in_process_broker import House
from tests.broker.permitted_users import GRANTS, Grant, called

REFUSALS = set(CODES.values())
ALTERNATIVES: dict[str, set[Grant]] = {
    # Each is enough without the others.
    "Metadata": {(Operation.CREATE, ResourceType.CLUSTER), (Operation.CREATE, ResourceType.TOPIC)},
    "CreateTopics": {(Operation.CREATE, ResourceType.CLUSTER), (Operation.CREATE, ResourceType.TOPIC)},
    "InitProducerId": {(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER), (Operation.WRITE, ResourceType.TOPIC)},
    "OffsetForLeaderEpoch": {
        (Operation.CLUSTER_ACTION, ResourceType.CLUSTER),
        (Operation.DESCRIBE, ResourceType.TOPIC),
    },
    "ListGroups": {(Operation.DESCRIBE, ResourceType.CLUSTER), (Operation.DESCRIBE, ResourceType.GROUP)},
}


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    house = House()
    yield house
    house.close()


def seen(answer: Any) -> tuple[list[int], list[str], list[int]]:
    """Return what a response reveals: error codes, names, authorized operations."""
    return list(codes_in(answer)), list(names_in(answer)), list(operations_in(answer))


def refused(answer: Any) -> bool:
    return not REFUSALS.isdisjoint(codes_in(answer))


NAMES = list(every_api(uuid.UUID(int=1), b""))


def needs_of(name: str) -> set[Grant]:
    """All that the API's row names."""
    return {(operation, need.kind) for need in PERMISSIONS[name.split()[0]] for operation in need.operations}


def test_every_api_has_a_permission_row_and_a_test_request() -> None:
    spoken = {api.name for api in SERVED.values()}
    missing = spoken - PERMISSIONS.keys()
    assert not missing, f"add what {missing} need to broker/apis/permissions.py"
    logins = {name for name in spoken if name.endswith("DelegationToken") or name.startswith("Sasl")}
    untried = spoken - {name.split()[0] for name in NAMES} - logins
    assert not untried, f"add requests of {untried} to tests/broker/every_api.py"


@pytest.mark.parametrize("name", NAMES)
def test_a_principal_with_all_permissions_is_never_denied(house: House, name: str) -> None:
    asked = house.cases[name]
    assert seen(house.ask(asked, "everything"))[:2] == seen(house.ask(asked, "admin"))[:2]


@pytest.mark.parametrize("name", NAMES)
def test_a_principal_without_permissions_changes_nothing_and_learns_no_name(house: House, name: str) -> None:
    answer = house.ask(house.cases[name], "nobody")
    codes, names, operations = seen(answer)
    row = PERMISSIONS[name.split()[0]]
    if any(need.scope is not Scope.SHOWN for need in row) and name not in UNNAMED:
        assert refused(answer)
    if row:
        assert set(codes) <= REFUSALS | {ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID}
    assert not {each for each in operations if each not in (0, -(2**31))}
    if name in UNASKED:
        assert KNOWN not in names


UNNAMED = ("Metadata of all", "Metadata of the cluster", "DescribeTopicPartitions of all", "DeleteTopics by id")
"""Requests that name no existing resource, so nothing can be denied."""
UNASKED = [name for name in NAMES if name.endswith((" of all", " by id"))]
"""Requests in whose response a topic name would not be from the client."""


@pytest.mark.parametrize("name", NAMES)
def test_the_permissions_of_a_row_are_sufficient_and_each_is_necessary(house: House, name: str) -> None:
    asked, needs = house.cases[name], needs_of(name)
    full = seen(house.ask(asked, "everything"))
    for grant in GRANTS:
        without = seen(house.ask(asked, f"all-but-{called(grant)}"))
        if grant not in needs:
            assert without[:2] == full[:2], f"{grant} is not in the row of {name}"
    alternatives = ALTERNATIVES.get(name.split()[0], set())
    lacking = [grant for grant in needs if seen(house.ask(asked, f"all-but-{called(grant)}")) != full]
    silent = needs - set(lacking) - alternatives - implied(needs)
    assert not silent or name in PARTLY, f"{silent} make no difference to {name}"


def implied(needs: set[Grant]) -> set[Grant]:
    """The permissions that imply others."""
    kinds = {Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS}
    return {grant for grant in needs if grant[0] in kinds}


PARTLY = [name for name in NAMES if " " in name or f"{name} " in " ".join(NAMES)] + [
    "Fetch",
    "ShareAcknowledge",
    "WriteTxnMarkers",
    "ListTransactions",
]
"""APIs whose permission row is covered by several requests, or by optional fields."""


@pytest.mark.parametrize("grant", GRANTS, ids=called)
def test_one_permission_allows_exactly_the_requests_that_need_it_alone(house: House, grant: Grant) -> None:
    for name in NAMES:
        row = PERMISSIONS[name.split()[0]]
        answer = house.ask(house.cases[name], f"only-{called(grant)}")
        whole = [need for need in row if need.scope is Scope.WHOLE]
        if whole:
            opened = all(grant[1] is need.kind and grants(grant[0], need.operations) for need in whole)
            code = set(codes_in(answer)) & {CODES[need.kind] for need in whole}
            assert opened is not bool(code) or name in (
                "TxnOffsetCommit",
                "OffsetCommit",
                "OffsetCommit by id",
                "OffsetDelete",
                "ConsumerGroupHeartbeat",
            )


def grants(operation: Operation, wanted: tuple[Operation, ...]) -> bool:
    from ottla.coordination.access.authorizer import ALLOWING

    return any(operation in ALLOWING[each] for each in wanted)


def test_existing_and_unknown_topics_look_alike_without_permission_to_describe_them(house: House) -> None:
    for name in (
        "Produce",
        "Fetch",
        "ListOffsets",
        "Metadata",
        "DeleteRecords",
        "DescribeProducers",
        "OffsetForLeaderEpoch",
    ):
        answer = house.ask(house.cases[name], "nobody")
        codes = [code for code in codes_in(answer) if code]
        assert len(codes) == 2
        assert len(set(codes)) == 1


def test_a_regular_expression_reveals_no_unauthorized_topic_to_a_member(house: House) -> None:
    request = ConsumerGroupHeartbeatRequest(
        "watchers", "m", 0, rebalance_timeout_ms=60_000, subscribed_topic_regex=KNOWN, topic_partitions=[]
    )
    topics = {"only-read-group": 0, "everything": 1}
    for user, count in topics.items():
        answer = house.ask(SampleRequest(replace(request, group_id=f"of {user}"), 1), user)
        assert (answer.error_code, len(answer.assignment.topic_partitions)) == (0, count)
