"""What a request costs the broker grows with the request and no faster: every API, with lists of n and of 2n elements.

Each list in each request of `every_api` is made longer in two ways, with one element again and again and with elements that
differ, for a user that may do everything and for one that may do nothing. Processor time is compared with itself at twice
the size: twice as much is right, four times as much is a loop within a loop. It is measured again where it looks wrong, so
that a busy machine does not count.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest
from msgspec import Struct
from msgspec.structs import replace

from ottla.protocol.apis import SERVED, api_of
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from ottla.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.list_groups import ListGroupsRequest
from ottla.protocol.messages.list_transactions import ListTransactionsRequest
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ottla.protocol.schema import Message
from tests.broker.every_api import GROUP, KNOWN, SampleRequest
from tests.broker.in_process_broker import House

pytestmark = pytest.mark.heavy

SIZE = 1_500
TRIES = 4
"""The number of measurements that all have to exceed the limit."""
TOO_MUCH = 2.8
"""Between twice and four times as much."""
NOISE_SECONDS = 0.003
FEWER = {"Produce": 20, "Produce by id": 20, "WriteTxnMarkers": 4}
"""APIs that write, and are slow: their lists are shorter by this factor."""
Path = tuple[str | int, ...]

MORE: dict[str, SampleRequest] = {
    "ListTransactions by state": SampleRequest(ListTransactionsRequest(["Ongoing"], [5]), 1),
    "ListGroups by state": SampleRequest(ListGroupsRequest(["Stable"], ["classic"]), 5),
    "SyncGroup with assignments": SampleRequest(
        SyncGroupRequest(GROUP, 7, "nobody", None, "consumer", "range", [SyncGroupRequestAssignment("a", b"x")]), 5
    ),
    "LeaveGroup of instances": SampleRequest(LeaveGroupRequest(GROUP, members=[MemberIdentity("", "i")]), 5),
    "ConsumerGroupHeartbeat with partitions": SampleRequest(
        ConsumerGroupHeartbeatRequest(
            "newer", "nobody", 5, rebalance_timeout_ms=5000, topic_partitions=[TopicPartitions(UUID(int=7), [0])]
        ),
        0,
    ),
    "DescribeLogDirs of topics": SampleRequest(DescribeLogDirsRequest([DescribableLogDirTopic(KNOWN, [0])]), 4),
    "DescribeClientQuotas of many": SampleRequest(DescribeClientQuotasRequest([ComponentData("user", 0, "x")]), 1),
    "CreateTopics with assignments": SampleRequest(CreateTopicsRequest([CreatableTopic("new", 1, 1)], 5000, True), 7),
    "DeleteAcls of principals": SampleRequest(
        DeleteAclsRequest([DeleteAclsFilter(2, None, 3, "User:x", None, 1, 1)]), 3
    ),
    "DeleteAcls of covered names": SampleRequest(
        DeleteAclsRequest([DeleteAclsFilter(2, "topic", 2, None, None, 1, 1)]), 3
    ),
    "IncrementalAlterConfigs of groups": SampleRequest(
        IncrementalAlterConfigsRequest(
            [AlterConfigsResource(32, "g", [AlterableConfig("consumer.session.timeout.ms", 0, "50000")])], False
        ),
        1,
    ),
    "IncrementalAlterConfigs of loggers": SampleRequest(
        IncrementalAlterConfigsRequest([AlterConfigsResource(8, "1", [AlterableConfig("ottla", 0, "INFO")])], True), 1
    ),
    "IncrementalAlterConfigs of a list": SampleRequest(
        IncrementalAlterConfigsRequest(
            [AlterConfigsResource(2, KNOWN, [AlterableConfig("cleanup.policy", 2, "delete")])], True
        ),
        1,
    ),
}
"""Requests with lists that are empty in `every_api`."""


def paths_of_lists(value: Any, at: Path = ()) -> Iterator[Path]:
    """The places of all lists with an element."""
    if isinstance(value, list | tuple):
        if value:
            yield at
            yield from paths_of_lists(value[0], (*at, 0))
    elif isinstance(value, Struct):
        for name in value.__struct_fields__:
            yield from paths_of_lists(getattr(value, name), (*at, name))


def with_list(value: Any, path: Path, make: Callable[[Any], list[Any]]) -> Any:
    """The same value with another list at a place."""
    if not path:
        return make(value[0])
    first, *rest = path
    if isinstance(first, int):
        return [with_list(value[first], tuple(rest), make), *value[first + 1 :]]
    return replace(value, **{first: with_list(getattr(value, first), tuple(rest), make)})


def varied(element: Any, number: int) -> Any:
    """An element that differs from the others by its name, its id or its number."""
    if isinstance(element, str):
        return f"{element}{number}"
    if isinstance(element, int):
        return number
    if isinstance(element, Struct):
        fields = {name: getattr(element, name) for name in element.__struct_fields__}
        for kind in (str, UUID, int):
            for name, value in fields.items():
                if isinstance(value, kind) and value != "" and value != UUID(int=0):
                    other = UUID(int=number + 1000) if kind is UUID else varied(value, number)
                    return replace(element, **{name: other})
    return element


SHAPES: dict[str, Callable[[Any, int], list[Any]]] = {
    "one again and again": lambda element, count: [element] * count,
    "all different": lambda element, count: [varied(element, number) for number in range(count)],
}
INT8_LISTS = {"resource_types"}
"""Fields whose elements repeat after 128, because an int8 has no more values."""


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    built = House()
    gc.collect()
    gc.freeze()  # what other tests have left is not walked through before each measurement
    yield built
    gc.unfreeze()
    built.close()


def spent(house: House, asked: SampleRequest, user: str) -> float:
    """Processor time for a request and its answer."""
    gc.collect()
    gc.disable()
    try:
        start = time.thread_time()
        house.ask(asked, user)
        return time.thread_time() - start
    finally:
        gc.enable()


def growths(house: House, name: str, asked: SampleRequest, user: str) -> Iterator[tuple[str, float, float]]:
    """Return the time of each list of a request at two sizes, if it is too long in every measurement."""
    count = SIZE // FEWER.get(name, 1)
    for path in paths_of_lists(asked.request):
        for shape, make in SHAPES.items():

            def longer(count: int, path: Path = path, make: Callable[[Any, int], list[Any]] = make) -> SampleRequest:
                def elements(element: Any) -> list[Any]:
                    made = make(element, count)
                    return [each % 128 for each in made] if path[-1] in INT8_LISTS else made

                request: Message = with_list(asked.request, path, elements)
                return SampleRequest(request, asked.version)

            house.ask(longer(2), user)
            for _ in range(TRIES):
                small, large = (spent(house, longer(size), user) for size in (count, 2 * count))
                if large <= TOO_MUCH * small + NOISE_SECONDS:
                    break
            else:
                yield f"{path} {shape}", small, large


@pytest.mark.parametrize("user", ["admin", "stranger"])
@pytest.mark.parametrize("name", [*House.case_names(), *MORE])
def test_a_request_of_twice_the_size_takes_twice_the_time(house: House, name: str, user: str) -> None:
    asked = MORE.get(name) or house.cases[name]
    assert list(growths(house, name, asked, user)) == []


def test_every_api_with_lists_is_among_the_requests(house: House) -> None:
    asked = {api_of(each.request).key for each in [*house.cases.values(), *MORE.values()]}
    left = {api.name for key, api in SERVED.items() if key not in asked}
    assert left == {
        "CreateDelegationToken",
        "DescribeDelegationToken",
        "ExpireDelegationToken",
        "RenewDelegationToken",
        "SaslAuthenticate",
        "SaslHandshake",
    }
