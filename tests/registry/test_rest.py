"""The REST interface: paths, status codes, error codes and bodies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ottla import Admin, NewTopic, Producer
from ottla.registry import records
from ottla.registry.records import Content
from tests.registry.running import RegistryClient, running_registry


def record(*fields: str, name: str = "A", **defaults: Any) -> dict[str, Any]:
    """Return a record schema with int fields; those with a default are given by keyword."""
    plain: list[dict[str, Any]] = [{"name": each, "type": "int"} for each in fields]
    more = [{"name": each, "type": "int", "default": value} for each, value in defaults.items()]
    return {"type": "record", "name": name, "fields": plain + more}


def text_of(schema: Any) -> str:
    return json.dumps(schema, separators=(",", ":"))


def test_a_schema_is_registered_once_and_found_by_id_guid_version_and_content(registry: RegistryClient) -> None:
    first = registry.register("s", record("x"))
    again = registry.register("s", record("x"))
    other = registry.register("t", record("x"))

    assert first.status == 200
    assert first.body["id"] == again.body["id"] == other.body["id"] == 1
    text, guid = text_of(record("x")), first.body["guid"]
    assert registry.get("/schemas/ids/1") == {"guid": guid, "schema": text}
    assert registry.get(f"/schemas/guids/{guid}") == {"guid": guid, "schema": text}
    assert registry.get(f"/schemas/guids/{guid}/ids") == [{"context": ".", "id": 1}]
    assert registry.get("/schemas/ids/1/schema") == record("x")
    assert registry.get("/schemas/ids/1/subjects") == ["s", "t"]
    assert registry.get("/schemas/ids/1/versions") == [{"subject": "s", "version": 1}, {"subject": "t", "version": 1}]
    entry = {"subject": "s", "version": 1, "id": 1, "guid": guid, "schema": text}
    assert registry.get("/subjects/s/versions/latest") == entry
    assert registry.get("/subjects/s/versions/-1") == entry
    assert registry.request("POST", "/subjects/s", {"schema": text}).body == entry
    assert registry.get("/subjects") == ["s", "t"]
    assert registry.get("/schemas?subjectPrefix=s") == [entry]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "/subjects/none/versions", None, 404, 40401),
        ("GET", "/subjects/none/versions/1", None, 404, 40401),
        ("GET", "/subjects/there/versions/2", None, 404, 40402),
        ("GET", "/subjects/there/versions/0", None, 422, 42202),
        ("GET", "/subjects/there/versions/first", None, 422, 42202),
        ("GET", "/schemas/ids/999", None, 404, 40403),
        ("GET", "/schemas/ids/x", None, 404, 404),
        ("GET", "/schemas/guids/x", None, 404, 40403),
        ("POST", "/subjects/there", {"schema": '"long"'}, 404, 40403),
        ("POST", "/subjects/none", {"schema": '"long"'}, 404, 40401),
        ("DELETE", "/subjects/none", None, 404, 40401),
        ("DELETE", "/subjects/there?permanent=true", None, 404, 40405),
        ("DELETE", "/subjects/there/versions/1?permanent=true", None, 404, 40407),
        ("GET", "/config/there", None, 404, 40408),
        ("GET", "/mode/there", None, 404, 40409),
        ("DELETE", "/config/there", None, 404, 40401),
        ("POST", "/subjects/there/versions", {"schema": text_of(record("x", "y"))}, 409, 409),
        ("POST", "/subjects/there/versions", {"schema": '{"type": "recor"}'}, 422, 42201),
        ("POST", "/subjects/there/versions", {"schema": ""}, 422, 42201),
        ("POST", "/subjects/there/versions", {"schema": '"int"', "schemaType": "XML"}, 422, 42201),
        ("POST", "/subjects/there/versions", {"schema": 5}, 422, 422),
        ("POST", "/subjects/there/versions", "{", 400, 400),
        ("POST", "/subjects/there/versions", {"schema": '"int"', "id": 7}, 422, 42205),
        ("POST", "/subjects/there/versions", {"schema": "x" * 1_100_000}, 422, 42209),
        ("POST", "/subjects/%00/versions", {"schema": '"int"'}, 422, 42208),
        ("POST", "/subjects/there/versions", {"schema": '"int"', "metadata": {"properties": {"a": 5}}}, 422, 422),
        ("POST", "/subjects/there/versions", {"schema": '"int"', "metadata": 5}, 422, 422),
        ("POST", "/subjects/there/versions", {"schema": '"int"', "ruleSet": {"domainRules": [5]}}, 422, 42210),
        ("POST", "/subjects/there/versions", {"schema": '{"type":"int","x":"\\ud800"}'}, 422, 42201),
        ("POST", "/subjects/there/versions", {"schema": '"int"', "references": [{"name": "a"}]}, 422, 422),
        ("POST", "/subjects/there/versions", {"schema": '{"type":"fixed","name":"F","size":1e400}'}, 422, 42201),
        ("POST", "/subjects/new/versions", {"schema": '{"multipleOf":1e400}', "schemaType": "JSON"}, 200, None),
        ("PUT", "/config/there", {"defaultMetadata": {"tags": {"a": "b"}}}, 422, 422),
        ("PUT", "/config", {"normalize": "yes"}, 422, 422),
        ("PUT", "/config", {}, 422, 42203),
        ("PUT", "/mode", [], 422, 422),
        ("GET", "/subjects?limit=x", None, 404, 404),
        ("PUT", "/config", {"compatibility": "SOME"}, 422, 42203),
        ("PUT", "/mode", {"mode": "SOME"}, 422, 42204),
        ("GET", "/nowhere", None, 404, 404),
        ("PUT", "/subjects", None, 405, 405),
    ],
)
def test_an_error_has_the_codes_of_the_interface(
    shared_registry: RegistryClient, method: str, path: str, body: Any, status: int, code: int
) -> None:
    shared_registry.register("there", record("x"))

    answer = shared_registry.request(method, path, body)

    assert (answer.status, answer.body.get("error_code")) == (status, code)
    assert answer.body.get("message") or code is None


def test_a_deleted_subject_is_hidden_until_it_is_deleted_for_good(registry: RegistryClient) -> None:
    registry.register("s", record("x"))
    registry.register("s", record("x", y=1))

    assert registry.request("DELETE", "/subjects/s/versions/1").body == 1
    assert registry.get("/subjects/s/versions") == [2]
    assert registry.request("DELETE", "/subjects/s/versions/1").body["error_code"] == 40406
    assert registry.request("DELETE", "/subjects/s").body == [2]
    assert registry.get("/subjects") == []
    assert registry.get("/subjects?deleted=true") == registry.get("/subjects?deletedOnly=true") == ["s"]
    assert registry.request("DELETE", "/subjects/s").body["error_code"] == 40404
    assert registry.get("/schemas/ids/1")["schema"]  # consumers still decode
    assert registry.request("DELETE", "/subjects/s?permanent=true").body == [1, 2]
    assert registry.request("GET", "/schemas/ids/1").body["error_code"] == 40403
    assert registry.register("s", record("z")).body["id"] == 3


def test_a_schema_registered_again_after_deletion_keeps_its_id(registry: RegistryClient) -> None:
    registry.register("s", record("x"))
    registry.request("DELETE", "/subjects/s")

    again = registry.register("s", record("x")).body

    assert (again["id"], again["version"]) == (1, 2)


def test_contexts_have_ids_of_their_own(registry: RegistryClient) -> None:
    registry.register("s", record("x"))
    registry.register(":.c:s", record("y"))

    assert registry.get("/contexts") == [".", ".c"]
    assert registry.get("/subjects") == [":.c:s", "s"]
    assert registry.get("/contexts/.c/subjects") == [":.c:s"]
    assert registry.get("/schemas/ids/1?subject=:.c:")["schema"] == text_of(record("y"))
    assert registry.get("/contexts/.c/schemas/ids/1")["schema"] == text_of(record("y"))
    assert registry.get("/contexts/.c/subjects/s/versions/1")["subject"] == ":.c:s"


def test_a_reference_is_resolved_and_protects_its_schema(registry: RegistryClient) -> None:
    registry.register("a", record("x"))
    references = [{"name": "A", "subject": "a", "version": 1}]
    outer = {"type": "record", "name": "B", "fields": [{"name": "a", "type": "A"}]}

    assert registry.register("b", outer).body["error_code"] == 42201
    registered = registry.register("b", outer, references=references)

    assert registered.body["id"] == 2
    assert registry.get("/subjects/b/versions/1")["references"] == references
    assert registry.get("/subjects/a/versions/1/referencedby") == [2]
    assert registry.request("DELETE", "/subjects/a/versions/1").body["error_code"] == 42206
    assert registry.request("DELETE", "/subjects/b/versions/1").status == 200
    assert registry.request("DELETE", "/subjects/a/versions/1").status == 200


def test_the_config_of_a_subject_overrides_the_global_one(registry: RegistryClient) -> None:
    registry.register("s", record("x"))

    assert registry.request("PUT", "/config/s", {"compatibility": "NONE"}).body == {"compatibility": "NONE"}
    assert registry.register("s", record("x", "y")).status == 200
    assert registry.request("PUT", "/config", {"compatibility": "FULL"}).status == 200
    assert registry.get("/config/s") == {"compatibilityLevel": "NONE"}
    assert registry.get("/config/other?defaultToGlobal=true") == {"compatibilityLevel": "FULL"}
    assert registry.request("DELETE", "/config/s").body == {"compatibilityLevel": "NONE"}
    assert registry.register("s", record("x", "y", "z")).status == 409


def test_mode_readonly_rejects_changes_and_import_takes_given_ids(registry: RegistryClient) -> None:
    registry.request("PUT", "/mode/r", {"mode": "READONLY"})
    assert registry.register("r", record("x")).body["error_code"] == 42205
    assert registry.get("/mode/r") == {"mode": "READONLY"}
    assert registry.request("PUT", "/mode/i", {"mode": "IMPORT"}).body == {"mode": "IMPORT"}

    taken = registry.register("i", record("x"), id=70, version=4)

    assert (taken.body["id"], taken.body["version"]) == (70, 4)
    assert registry.register("j", record("x", "y")).body["id"] == 71
    assert registry.register("i", record("y"), id=70).body["error_code"] == 42207
    assert registry.request("PUT", "/mode/j", {"mode": "IMPORT"}).body["error_code"] == 42205
    assert registry.request("PUT", "/mode/j?force=true", {"mode": "IMPORT"}).status == 200


def test_compatibility_is_checked_without_registration(registry: RegistryClient) -> None:
    registry.register("s", record("x"))
    path = "/compatibility/subjects/s/versions/latest"

    assert registry.request("POST", path, {"schema": text_of(record("x", y=1))}).body == {"is_compatible": True}
    verbose = registry.request("POST", f"{path}?verbose=true", {"schema": text_of(record("x", "y"))}).body

    assert not verbose["is_compatible"]
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in verbose["messages"][0]
    assert registry.get("/subjects/s/versions") == [1]


def test_listings_have_pages(registry: RegistryClient) -> None:
    for name in "abcd":
        registry.register(name, record(name))

    assert registry.get("/subjects?offset=1&limit=2") == ["b", "c"]
    assert [each["id"] for each in registry.get("/schemas?offset=2")] == [3, 4]


def test_metadata_and_rules_are_stored_and_inherited(registry: RegistryClient) -> None:
    metadata = {"properties": {"owner": "me"}}
    rules = {"domainRules": [{"name": "r", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": "true"}]}
    registry.register("s", record("x"), metadata=metadata, ruleSet=rules)
    registry.register("s", record("x", y=1))

    latest = registry.get("/subjects/s/versions/2")

    assert latest["metadata"] == metadata
    assert latest["ruleSet"] == rules
    assert registry.get("/subjects/s/metadata?key=owner&value=me")["version"] == 2
    assert [each["version"] for each in registry.get("/schemas?ruleType=CEL")] == [1, 2]


def test_pages_of_other_sites_are_rejected(shared_registry: RegistryClient) -> None:
    answer = shared_registry.request("PUT", "/mode", {"mode": "READONLY"}, Origin="http://elsewhere.example")

    assert answer.status == 403
    assert shared_registry.get("/mode") == {"mode": "READWRITE"}


def test_ids_and_versions_have_31_bits(registry: RegistryClient) -> None:
    assert registry.request("PUT", "/mode/i", {"mode": "IMPORT"}).status == 200
    large_id = registry.register("i", record("x"), id=2**31, version=1)
    large_version = registry.register("i", record("x"), id=7, version=2**31)

    assert (large_id.status, large_id.body["message"]) == (422, "invalid id 2147483648: expected at most 2147483647")
    assert large_version.body["message"] == "invalid version 2147483648: expected at most 2147483647"
    assert registry.register("other", record("x")).body["id"] == 1


def test_the_format_of_a_schema_that_another_program_has_stored_wrongly_is_a_client_error(broker_address: str) -> None:
    stored = records.schema_record("p", 1, 1, Content("PROTOBUF", "not a schema"))
    with Admin(bootstrap_servers=broker_address) as admin, Producer(bootstrap_servers=broker_address) as producer:
        admin.create_topics([NewTopic("_schemas-wrong", 1, configs={"cleanup.policy": "compact"})])
        producer.send("_schemas-wrong", stored.value, key=stored.key).result()

    with running_registry(broker_address, topic="_schemas-wrong", group="sr-wrong") as server:
        answer = RegistryClient(server.address).request("GET", "/schemas/ids/1?format=serialized")

    assert (answer.status, answer.body["error_code"]) == (422, 42201)
    assert answer.body["message"].startswith("the schema cannot be formatted: ")
