"""A cluster with ACLs: the permissions of nodes, of clients through brokers, and of others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla import Admin, Cluster, NewTopic
from ottla.client.admin import AclBinding, DelegationToken
from ottla.errors import ConfigError, ErrorCode, KafkaError, SaslAuthenticationError
from ottla.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.describe_quorum import DescribeQuorumRequest
from ottla.protocol.messages.envelope import EnvelopeRequest
from ottla.protocol.messages.vote import VoteRequest
from ottla.protocol.schema import Message
from tests.broker.quorum_nodes import Place
from tests.broker.test_controller_authentication import alone, by_password, logged_in
from tests.broker.wire import Wire
from tests.patience import eventually

pytestmark = pytest.mark.xdist_group("controller rules")  # what they share is made once

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
LINE = f'{PLAIN} username="node" password="n0de" user_node="n0de" user_admin="adm1n" user_alice="al1ce";'
RULES = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
SUPER = {"super.users": "User:node;User:admin"}


def guarded() -> dict[str, str]:
    """The settings of a node with authentication on every listener."""
    who = {f"listener.name.{name}.plain.sasl.jaas.config": LINE for name in ("controller", "plaintext")}
    how = {f"listener.name.{name}.sasl.enabled.mechanisms": "PLAIN" for name in ("controller", "plaintext")}
    how["listener.name.plaintext.sasl.enabled.mechanisms"] = "PLAIN,SCRAM-SHA-256"
    return {
        "delegation.token.secret.key": "s3cret",
        "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,PLAINTEXT:SASL_PLAINTEXT",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        **who, **how, **RULES, **SUPER,
    }  # fmt: skip


def as_user(cluster: Cluster, name: str, password: str) -> dict[str, str]:
    login = {"sasl.mechanism": "PLAIN", "sasl.username": name, "sasl.password": password}
    return {**cluster.client_settings(), "security.protocol": "SASL_PLAINTEXT", **login}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(**guarded()) as cluster:  # type: ignore[arg-type]
        yield cluster


@pytest.fixture
def admin(cluster: Cluster) -> Iterator[Admin]:
    with Admin(as_user(cluster, "admin", "adm1n")) as admin:
        yield admin


@pytest.fixture
def alice(cluster: Cluster) -> Iterator[Admin]:
    with Admin(as_user(cluster, "alice", "al1ce")) as alice:
        yield alice


def code_of(call: Callable[[], object]) -> int:
    """Return the error code of a failure."""
    with pytest.raises(KafkaError) as failure:
        call()
    return failure.value.code


def by_token(cluster: Cluster, token: DelegationToken) -> dict[str, str]:
    who = f'username="{token.token_info.token_id}" password="{token.hmac_as_base64}" tokenauth="true"'
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    login = {"sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": f"{module} required {who};"}
    return {**cluster.client_settings(), "security.protocol": "SASL_PLAINTEXT", **login}


def refusal_by_token(cluster: Cluster, token: DelegationToken) -> int:
    """Return the error for a token request of a token holder, or for a login at a broker that does not have the token
    yet.
    """
    with Admin(by_token(cluster, token)) as other:
        try:
            return code_of(other.create_delegation_token)
        except SaslAuthenticationError:
            return ErrorCode.SASL_AUTHENTICATION_FAILED


def test_a_token_created_through_a_broker_is_used_renewed_and_expired(cluster: Cluster, alice: Admin) -> None:
    token = alice.create_delegation_token(max_lifetime_ms=3_600_000)
    eventually(lambda: alice.describe_delegation_token() == [token])
    eventually(lambda: refusal_by_token(cluster, token) == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    assert alice.renew_delegation_token(token.hmac, 1000) <= token.token_info.max_timestamp
    alice.expire_delegation_token(token.hmac)
    eventually(lambda: alice.describe_delegation_token() == [])
    assert code_of(lambda: alice.renew_delegation_token(token.hmac)) == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_a_token_for_another_user_requires_permission(alice: Admin, admin: Admin) -> None:
    refused = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert code_of(lambda: alice.create_delegation_token(owner="User:bob")) == refused
    assert admin.create_delegation_token(owner="User:bob").token_info.owner == "User:bob"


def test_a_clients_acls_apply_through_every_broker_and_controller(cluster: Cluster, admin: Admin, alice: Admin) -> None:
    rule = AclBinding("topic", "alice-", "User:alice", "create", pattern_type="prefixed")
    admin.create_acls([rule])
    for number, node in enumerate((0, *cluster.nodes)):
        if node:
            cluster.kill(node)
        eventually(lambda: may(lambda: alice.create_topics([NewTopic(f"alice-{number}")])))  # noqa: B023
        assert code_of(lambda: alice.create_topics([NewTopic("bobs")])) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if node:
            cluster.start(node)
    assert code_of(lambda: alice.delete_topics(["alice-0"])) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert code_of(lambda: alice.create_acls([rule])) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert {f"alice-{number}" for number in range(4)} <= set(admin.list_topics())


def may(call: Callable[[], object]) -> bool:
    """True if the operation is allowed; the ACL or topic may have been created just before."""
    try:
        call()
    except KafkaError as error:
        return error.code == ErrorCode.TOPIC_ALREADY_EXISTS
    return True


@pytest.fixture
def lone(tmp_path: Path) -> Iterator[Place]:
    with alone(tmp_path, by_password(LINE) | RULES | SUPER) as place:
        yield place


def send_as(place: Place, who: str, password: str, request: Message) -> Any:
    with Wire(place.address) as client:
        assert logged_in(client, f"\0{who}\0{password}".encode()) == 0
        return client.ask(request)


def test_an_authenticated_user_that_is_no_node_may_not_vote_or_forward_requests(lone: Place) -> None:
    for request in (VoteRequest(), BrokerHeartbeatRequest(), EnvelopeRequest(), DescribeQuorumRequest()):
        assert send_as(lone, "alice", "al1ce", request).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    created = send_as(lone, "alice", "al1ce", CreateTopicsRequest([CreatableTopic("a", 1, 1)]))
    assert [each.error_code for each in created.topics] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]


def test_a_node_is_accepted_and_has_to_name_the_principal_of_a_forwarded_request(lone: Place) -> None:
    eventually(lambda: lone_leads(lone))
    assert send_as(lone, "node", "n0de", DescribeQuorumRequest()).error_code == ErrorCode.NONE
    nobody = send_as(lone, "node", "n0de", EnvelopeRequest(b"", b"\0\1", bytes(4)))
    assert nobody.error_code == ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE


def lone_leads(place: Place) -> bool:
    """True if the node is the active controller, which alone processes an envelope."""
    code: int = send_as(place, "node", "n0de", EnvelopeRequest(b"", b"\0\1", bytes(4))).error_code
    return code != ErrorCode.NOT_CONTROLLER


def test_acls_on_a_listener_without_authentication_of_nodes_are_rejected_at_startup(tmp_path: Path) -> None:
    said = "listener CONTROLLER does not authenticate nodes"
    with pytest.raises(ConfigError, match=said), alone(tmp_path, RULES):
        pass
    (tmp_path / "open").mkdir()
    with alone(tmp_path / "open", RULES | {"super.users": "User:ANONYMOUS"}) as place:
        eventually(place.leads)
