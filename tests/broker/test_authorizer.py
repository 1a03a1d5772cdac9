"""A broker with an authorizer: rules are kept, found, in force at once, and there after a restart."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ConfigError, ErrorCode
from ottla.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.protocol.messages.describe_acls import DescribeAclsRequest
from tests.broker.wire import Wire, fetch, produce, values
from tests.broker.wire import batch as one_batch

SETTINGS: dict[str, Any] = {"authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
READ, WRITE, DESCRIBE, ALLOW, DENY = 3, 4, 8, 3, 2
EVERYTHING = DescribeAclsRequest(1, None, 1, None, None, 1, 1)


def rule(name: str, operation: int, permission: int = ALLOW, *, kind: int = 2, pattern: int = 3) -> AclCreation:
    return AclCreation(kind, name, pattern, "User:ANONYMOUS", "*", operation, permission)


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[Wire]:
    """A broker that allows only what ACLs allow; every user may change the ACLs."""
    with (
        Broker(tmp_path, **{**SETTINGS, "super_users": "User:ANONYMOUS"}) as broker,
        Wire(broker.bootstrap_servers) as wire,
    ):
        wire.create("orders")
        wire.produce("orders", b"a")
        assert wire.ask(CreateAclsRequest([rule("kafka-cluster", 7, kind=4), rule("kafka-cluster", 8, kind=4)])).results
    with Broker(tmp_path, **SETTINGS) as broker, Wire(broker.bootstrap_servers) as wire:
        yield wire


def create(wire: Wire, *rules: AclCreation) -> None:
    results = wire.ask(CreateAclsRequest(rules)).results
    assert [each.error_code for each in results] == [0] * len(rules)


def test_an_operation_without_a_rule_is_denied_and_a_new_rule_applies_at_once(strict: Wire) -> None:
    assert strict.produce("orders", b"b").error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    create(strict, rule("ord", WRITE, pattern=4))
    assert strict.produce("orders", b"b").error_code == 0
    assert strict.fetch("orders").error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    create(strict, rule("*", READ))
    assert values(strict.fetch("orders")) == [b"a", b"b"]


def test_a_fetch_session_returns_no_records_after_its_permission_is_removed(strict: Wire) -> None:
    create(strict, rule("orders", READ), rule("orders", WRITE))
    request = fetch("orders", 1)
    request.session_epoch = 0
    session_id = strict.ask(request, 12).session_id
    create(strict, rule("orders", READ, DENY))
    strict.produce("orders", b"b")
    request.session_id, request.session_epoch, request.topics = session_id, 1, []
    (topic,) = strict.ask(request, 12).responses
    assert topic.partitions[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert not topic.partitions[0].records


def test_a_waiting_fetch_is_denied_if_its_permission_was_removed_meanwhile(strict: Wire) -> None:
    create(strict, rule("orders", READ), rule("orders", WRITE))
    strict.send(fetch("orders", 1, max_wait_ms=20_000), 12)
    host, port = strict.socket.getpeername()
    with Wire(f"{host}:{port}") as other:
        create(other, rule("orders", READ, DENY))
        assert other.ask(produce("orders", one_batch([b"b"])), 11).responses[0].partition_responses[0].error_code == 0
    _, answer = strict.receive(fetch("orders", 1), 12)
    assert answer.responses[0].partitions[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_acls_persist_after_a_restart(tmp_path: Path) -> None:
    settings: dict[str, Any] = {**SETTINGS, "super_users": "User:ANONYMOUS"}
    with Broker(tmp_path, **settings) as broker, Wire(broker.bootstrap_servers) as wire:
        create(wire, rule("orders", READ), rule("orders", WRITE), rule("ord", DESCRIBE, pattern=4))
        wire.ask(DeleteAclsRequest([DeleteAclsFilter(2, "orders", 3, None, None, WRITE, 1)]))
    with Broker(tmp_path, **settings) as broker, Wire(broker.bootstrap_servers) as wire:
        found = {(each.resource_name, acl.operation) for each in wire.ask(EVERYTHING).resources for acl in each.acls}
    assert found == {("orders", READ), ("ord", DESCRIBE)}


def test_confluents_admin_client_creates_finds_and_deletes_acls(strict: Wire) -> None:
    host, port = strict.socket.getpeername()
    admin = AdminClient({"bootstrap.servers": f"{host}:{port}"})
    literal, prefixed = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED
    who = ("User:a", "*", AclOperation.READ, AclPermissionType.ALLOW)
    rules = [AclBinding(ResourceType.TOPIC, "ab", literal, *who), AclBinding(ResourceType.TOPIC, "a", prefixed, *who)]
    for future in admin.create_acls(rules).values():
        future.result(20)
    anyone: Any = (None, None, AclOperation.ANY, AclPermissionType.ANY)
    about = AclBindingFilter(ResourceType.TOPIC, "ab", ResourcePatternType.MATCH, *anyone)
    assert sorted(each.name for each in admin.describe_acls(about).result(20)) == ["a", "ab"]
    (gone,) = admin.delete_acls([about]).values()
    assert len(gone.result(20)) == 2
    assert admin.describe_acls(about).result(20) == []
    with pytest.raises(ck.KafkaException, match="INVALID_REQUEST"):
        admin.create_acls([AclBinding(ResourceType.BROKER, "x", literal, *who)])[
            AclBinding(ResourceType.BROKER, "x", literal, *who)
        ].result(20)


def test_the_audit_log_has_a_line_for_each_decision_and_is_bounded(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    settings: dict[str, Any] = {**SETTINGS, "audit_log": str(log), "audit_log_max_bytes": 2000}
    with Broker(tmp_path / "data", **settings) as broker, Wire(broker.bootstrap_servers, client_id="c-1") as wire:
        wire.produce("orders", b"a")
        line = json.loads(log.read_text().splitlines()[0])
        assert line.pop("time").endswith("Z")
        assert line == {
            "principal": "User:ANONYMOUS",
            "host": "127.0.0.1",
            "client_id": "c-1",
            "api": "Produce",
            "operation": "WRITE",
            "resource_type": "TOPIC",
            "resource": "orders",
            "allowed": False,
        }
        for _ in range(40):
            wire.produce("orders", b"a")
    assert {each.name for each in tmp_path.glob("audit*")} == {"audit.log", "audit.log.1"}
    assert all(each.stat().st_size <= 2000 for each in tmp_path.glob("audit*"))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"authorizer_class_name": "x.Y"}, "there is one authorizer here"),
        ({"super_users": "admin"}, "'admin' must be a type and a name, as User:admin"),
        ({"audit_log": "a.log"}, "set authorizer.class.name = standard"),
        ({**SETTINGS, "audit_log": "/nowhere/at/all"}, "audit.log = '/nowhere/at/all': No such file"),
    ],
)
def test_security_settings_without_effect_are_rejected(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Broker(**settings).start()


def test_super_users_without_an_authorizer_cause_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), Broker(super_users="User:admin"):
        pass
    assert [
        line for line in caplog.messages if line.startswith("super.users has no effect without authorizer.class.name")
    ]
