"""ACLs and quotas through our own admin client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ottla import Admin, Broker
from ottla.client.admin import AclBinding, AclBindingFilter, ClientQuotaEntity
from ottla.errors import KafkaError

ALICE = AclBinding("topic", "flights", "User:alice", "read")
ETL = AclBinding("topic", "fl", "User:etl", "write", pattern_type="prefixed")
BOB = AclBinding("group", "*", "User:bob", "all", "deny", host="10.0.0.7")


@pytest.fixture
def admin() -> Iterator[Admin]:
    settings: dict[str, Any] = {"authorizer_class_name": "standard", "super_users": "User:ANONYMOUS"}
    with Broker(**settings) as broker, Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        yield admin


def test_rules_are_made_found_and_deleted(admin: Admin) -> None:
    admin.create_acls([ALICE, ETL, BOB, ALICE])
    assert admin.describe_acls(AclBindingFilter()) == sorted([ALICE, ETL, BOB])
    assert admin.describe_acls(AclBindingFilter("topic", "flights", pattern_type="match")) == sorted([ALICE, ETL])
    assert admin.describe_acls(AclBindingFilter("topic", "flights")) == [ALICE]
    assert admin.delete_acls([AclBindingFilter(permission="deny"), AclBindingFilter(principal="User:etl")]) == [
        BOB,
        ETL,
    ]
    assert admin.describe_acls(AclBindingFilter()) == [ALICE]


def test_a_broker_without_an_authorizer_says_so() -> None:
    with Broker() as broker, Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        with pytest.raises(KafkaError, match="no authorizer"):
            admin.create_acls([ALICE])
        with pytest.raises(KafkaError, match="no authorizer"):
            admin.describe_acls(AclBindingFilter())


def test_what_cannot_be_is_one_sentence(admin: Admin) -> None:
    with pytest.raises(KafkaError, match="'alice' is no principal: write User: and a name"):
        admin.create_acls([ALICE._replace(principal="alice")])
    with pytest.raises(ValueError, match="did you mean 'topic'"):
        admin.create_acls([ALICE._replace(resource_type="topics")])
    with pytest.raises(ValueError, match=r"is no AclBinding: write AclBinding\('topic'"):
        admin.create_acls([("topic", "flights")])  # type: ignore[list-item]


def test_what_is_wrong_with_several_rules_is_said_once(admin: Admin) -> None:
    wrong = [ALICE._replace(principal="alice", operation=operation) for operation in ("read", "write")]
    with pytest.raises(KafkaError) as told:
        admin.create_acls(wrong)
    named = "allow alice read of topic 'flights', allow alice write of topic 'flights': "
    assert named in str(told.value)
    assert str(told.value).count("is no principal") == 1


def test_a_change_of_limits_that_is_only_looked_at_changes_nothing(admin: Admin) -> None:
    entity = ClientQuotaEntity(user="etl", client_id="c")
    admin.alter_client_quotas({entity: {"request_percentage": 10}}, validate_only=True)
    assert admin.describe_client_quotas() == {}
    admin.alter_client_quotas({entity: {"request_percentage": 10}})
    assert admin.describe_client_quotas(entity) == {entity: {"request_percentage": 10.0}}
    assert admin.describe_client_quotas(ClientQuotaEntity(user="etl")) == {}
