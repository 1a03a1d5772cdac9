"""Logins, permissions by subject, TLS and metrics."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import ssl
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from ottla.errors import ConfigError
from ottla.registry.access import hash_password, read_access, verify_password
from ottla.registry.metrics import RequestMetrics
from tests.registry.running import RegistryClient, running_registry


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


ALICE, TOKEN = basic("alice", "secret"), "Bearer t-1"


@pytest.fixture(scope="module")
def guarded(broker_address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryClient]:
    """A registry in which alice writes subjects a-…, and the token's user reads a-1."""
    file = tmp_path_factory.mktemp("access") / "auth.json"
    rules = {
        "users": [{"username": "alice", "password": hash_password("secret")}],
        "tokens": [{"username": "ci", "sha256": hashlib.sha256(b"t-1").hexdigest()}],
        "permissions": [
            {"username": "alice", "operation": "Write", "resource": "Subject:a-.*"},
            {"username": "ci", "operation": "Read", "resource": "Subject:a-1"},
        ],
    }
    file.write_text(json.dumps(rules))
    names = {"topic": f"_schemas-{uuid.uuid4()}", "group": f"sr-{uuid.uuid4()}"}
    with running_registry(broker_address, **names, auth_file=str(file)) as server:
        yield RegistryClient(server.address)


def status_of(client: RegistryClient, method: str, path: str, login: str, body: object = None) -> int:
    return client.request(method, path, body, Authorization=login).status


def test_a_request_needs_a_known_user(guarded: RegistryClient) -> None:
    assert guarded.request("GET", "/subjects").body["error_code"] == 40101
    for login in (basic("alice", "wrong"), basic("bob", "secret"), "Bearer t-2", "Basic ?", "Digest x"):
        assert status_of(guarded, "GET", "/subjects", login) == 401
    assert status_of(guarded, "GET", "/subjects", ALICE) == 200


def test_permissions_are_by_subject(guarded: RegistryClient) -> None:
    schema = {"schema": '"int"'}
    assert status_of(guarded, "POST", "/subjects/a-1/versions", ALICE, schema) == 200
    assert status_of(guarded, "POST", "/subjects/a-2/versions", ALICE, {"schema": '"long"'}) == 200
    assert status_of(guarded, "POST", "/subjects/b-1/versions", ALICE, schema) == 403
    assert status_of(guarded, "PUT", "/config", ALICE, {"compatibility": "NONE"}) == 403
    assert status_of(guarded, "POST", "/subjects/a-1/versions", TOKEN, {"schema": '"bytes"'}) == 403

    assert guarded.request("GET", "/subjects", Authorization=TOKEN).body == ["a-1"]
    assert status_of(guarded, "GET", "/schemas/ids/1", TOKEN) == 200
    assert status_of(guarded, "GET", "/schemas/ids/2", TOKEN) == 403
    assert status_of(guarded, "GET", "/subjects/a-2/versions", TOKEN) == 403


def test_metrics_count_requests_and_schemas(registry: RegistryClient) -> None:
    registry.register("s", '"int"')
    connection = http.client.HTTPConnection(registry.address)
    connection.request("GET", "/metrics")

    page = connection.getresponse().read().decode()
    connection.close()

    assert 'ottla_registry_requests_total{method="POST",area="subjects",status="200"} 1' in page
    assert "ottla_registry_schemas 1" in page
    assert "ottla_registry_is_leader 1" in page


def test_metrics_have_few_labels_whatever_methods_clients_send() -> None:
    counted = RequestMetrics()
    for number in range(3):
        counted.note_request(f"METHOD{number}", f"/path{number}", 405, 0.1)

    page = counted.write_page({}).decode()

    assert 'ottla_registry_requests_total{method="other",area="other",status="405"} 3' in page
    assert "METHOD" not in page


def test_a_certificate_makes_it_https(broker_address: str, tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    certificate.cert_chain_pems[0].write_to_path(chain)
    certificate.private_key_pem.write_to_path(key)
    context = ssl.create_default_context()
    authority.configure_trust(context)
    names = {"topic": f"_schemas-{uuid.uuid4()}", "group": f"sr-{uuid.uuid4()}"}

    with running_registry(broker_address, **names, certificate_file=str(chain), key_file=str(key)) as server:
        connection = http.client.HTTPSConnection(server.address, context=context)
        connection.request("GET", "/subjects")
        assert connection.getresponse().read() == b"[]"
        connection.close()
        assert server.url.startswith("https://")


@pytest.mark.parametrize(
    "text",
    ["{", '{"user": []}', '{"users": [{"username": "a", "password": "plain"}]}',
     '{"permissions": [{"username": "a", "operation": "Own", "resource": "Subject:x"}]}',
     '{"permissions": [{"username": "a", "operation": "Read", "resource": "Subject:("}]}'],
)  # fmt: skip
def test_a_wrong_file_is_a_clear_error(text: str, tmp_path: Path) -> None:
    file = tmp_path / "auth.json"
    file.write_text(text)

    with pytest.raises(ConfigError, match="--auth"):
        read_access(str(file))


def test_a_password_is_verified_against_its_hash() -> None:
    stored = hash_password("secret")

    assert "secret" not in stored
    assert verify_password("secret", stored)
    assert not verify_password("Secret", stored)
