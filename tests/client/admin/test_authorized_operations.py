"""The authorized operations of an admin's own user (KIP-430)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from ottla import Admin, Broker, Consumer, Producer, aio
from ottla.client.admin import AclBinding, NewTopic
from ottla.client.admin.acl import operations_in

CONFIGS = ("describe-configs", "alter-configs")
ALL_OF_TOPIC = frozenset({"read", "write", "create", "delete", "alter", "describe", *CONFIGS})
SOME = frozenset({"read", "describe"})
WATCHED = "User:ANONYMOUS"


@pytest.fixture(scope="module")
def ruled() -> Iterator[Broker]:
    """Everything is allowed where there is no rule; `flights` may be read, the group `tower` not be deleted."""
    with (
        Broker(authorizer_class_name="standard", allow_everyone_if_no_acl_found=True) as broker,
        Admin(bootstrap_servers=broker.bootstrap_servers) as admin,
    ):
        admin.create_topics([NewTopic("flights", 1), NewTopic("hotels", 1)])
        with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
            producer.send("hotels", b"a guest")
        with Consumer(
            bootstrap_servers=broker.bootstrap_servers, group_id="tower", auto_offset_reset="earliest"
        ) as consumer:
            consumer.subscribe(["hotels"])
            assert consumer.poll(timeout=10)
        admin.create_acls(
            [
                AclBinding("topic", "flights", WATCHED, "read"),
                AclBinding("group", "tower", WATCHED, "all"),
                AclBinding("group", "tower", WATCHED, "delete", "deny"),
            ]
        )
        yield broker


@pytest.fixture
def admin(ruled: Broker) -> Iterator[Admin]:
    with Admin(bootstrap_servers=ruled.bootstrap_servers) as admin:
        yield admin


def test_authorized_operations_of_a_topic_are_returned_on_request(admin: Admin) -> None:
    described = admin.describe_topics(["flights", "hotels"], include_authorized_operations=True)
    assert described["flights"].authorized_operations == SOME
    assert described["hotels"].authorized_operations == ALL_OF_TOPIC
    assert admin.describe_topics(["flights"])["flights"].authorized_operations is None


def test_authorized_operations_of_the_cluster_are_returned_on_request(admin: Admin) -> None:
    described = admin.describe_cluster(include_authorized_operations=True)
    assert {"create", "alter", "cluster-action", "idempotent-write"} <= (described.authorized_operations or set())
    assert "read" not in (described.authorized_operations or set())
    assert admin.describe_cluster().authorized_operations is None


def test_authorized_operations_of_a_group_are_returned_on_request(admin: Admin) -> None:
    for describe in (admin.describe_consumer_groups, admin.describe_classic_groups):
        reported = describe(["tower"], include_authorized_operations=True)["tower"]
        assert reported.authorized_operations == SOME.union(CONFIGS)
        assert describe(["tower"])["tower"].authorized_operations is None


def test_the_asyncio_admin_has_the_same_authorized_operations_arguments(ruled: Broker) -> None:
    async def list_operations() -> frozenset[str] | None:
        async with aio.Admin(bootstrap_servers=ruled.bootstrap_servers) as admin:
            described = await admin.describe_topics(["flights"], include_authorized_operations=True)
            return described["flights"].authorized_operations

    assert asyncio.run(list_operations()) == SOME


def test_absent_authorized_operations_differ_from_an_empty_set() -> None:
    assert operations_in(-(2**31)) is None
    assert operations_in(0) == frozenset()


def test_a_flag_is_true_or_false(admin: Admin) -> None:
    with pytest.raises(TypeError, match="include_authorized_operations = 'no': must be True or False"):
        admin.describe_consumer_groups(["tower"], include_authorized_operations="no")  # type: ignore[arg-type]
