"""DescribeAcls, CreateAcls, DeleteAcls: without an authorizer they return SECURITY_DISABLED."""

from __future__ import annotations

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourceType,
)
from confluent_kafka.admin import ResourcePatternType as PatternType

from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ErrorCode
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from ottla.protocol.messages.describe_acls import DescribeAclsRequest
from tests.broker.wire import Wire

VERSIONS = range(1, 4)


@pytest.mark.parametrize("version", VERSIONS)
def test_acls_cannot_be_listed_without_an_authorizer(wire: Wire, version: int) -> None:
    answer = wire.ask(DescribeAclsRequest(1, None, 1, None, None, 1, 1), version)
    assert (answer.error_code, answer.resources) == (ErrorCode.SECURITY_DISABLED, [])
    assert "no authorizer" in answer.error_message


@pytest.mark.parametrize("version", VERSIONS)
def test_each_created_acl_is_rejected_without_an_authorizer(wire: Wire, version: int) -> None:
    rules = [AclCreation(2, name, 3, "User:a", "*", 3, 3) for name in ("t", "u")]
    results = wire.ask(CreateAclsRequest(rules), version).results
    assert [result.error_code for result in results] == [ErrorCode.SECURITY_DISABLED] * 2
    assert wire.ask(CreateAclsRequest(), version).results == []


@pytest.mark.parametrize("version", VERSIONS)
def test_each_deletion_filter_is_rejected_without_an_authorizer(wire: Wire, version: int) -> None:
    filters = [DeleteAclsFilter(1, None, 1, None, None, 1, 1), DeleteAclsFilter(2, "t", 3, "User:a", "*", 3, 3)]
    results = wire.ask(DeleteAclsRequest(filters), version).filter_results
    assert [(each.error_code, each.matching_acls) for each in results] == [(ErrorCode.SECURITY_DISABLED, [])] * 2


def test_the_three_acl_apis_are_advertised(wire: Wire) -> None:
    keys = {
        api.api_key: (api.min_version, api.max_version) for api in wire.ask(ApiVersionsRequest("a", "1"), 4).api_keys
    }
    assert [keys[key] for key in (29, 30, 31)] == [(1, 3)] * 3


def test_confluents_admin_client_gets_the_error_that_security_is_disabled(broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    rule = ("t", PatternType.LITERAL, "User:a", "*", AclOperation.READ, AclPermissionType.ALLOW)
    one = AclBindingFilter(ResourceType.TOPIC, *rule)
    made = admin.create_acls([AclBinding(ResourceType.TOPIC, *rule)])
    gone = admin.delete_acls([one])
    # Of what answers DescribeAcls librdkafka passes the error over.
    for future in (*made.values(), *gone.values()):
        with pytest.raises(ck.KafkaException) as raised:
            future.result(20)
        assert raised.value.args[0].code() == ck.KafkaError.SECURITY_DISABLED
