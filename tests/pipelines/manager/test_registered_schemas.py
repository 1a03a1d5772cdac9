"""The schema registry of a pipeline file, as `validate` checks it: without Spark and without brokers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.cli.main import main
from ottla.free_ports import free_port
from ottla.pipelines.file.reading import read_text
from ottla.pipelines.manager.registered_schemas import ensure_schemas
from ottla.pipelines.manager.schema_changes import find_schema_changes
from ottla.pipelines.manager.state_directory import StateDirectory
from ottla.pipelines.place import PipelineFileError
from ottla.pipelines.registry_settings import RegistrySettings
from ottla.schemas import Schema, SchemaRegistryClient
from ottla.spark.options import REGISTRY_SETTINGS, registry_spelling
from tests.schemas.small_registry import SmallRegistry, small_registry

Output = pytest.CaptureFixture[str]
AVRO = {"valueFormat": "avro"}


def order(*fields: tuple[str, Any]) -> str:
    return json.dumps({"type": "record", "name": "Order", "fields": [{"name": n, "type": t} for n, t in fields]})


OLD = order(("id", "int"), ("item", "string"))
NEW = order(("id", "long"), ("price", "double"))


@pytest.fixture
def registry() -> Iterator[SmallRegistry]:
    with small_registry() as served:
        yield served


def pipeline(
    source: dict[str, Any] | None = None, sink: dict[str, Any] | None = None, name: str = "orders", **more: Any
) -> dict[str, Any]:
    found = {"type": "topic", "topic": name, **(AVRO if source is None else source)}
    return {"source": found, "sink": {"type": "topic", "topic": f"{name}-out", **(sink or {})}, **more}


def write(folder: Path, url: str | None, settings: dict[str, Any] | None = None, **pipelines: Any) -> Path:
    given = {"bootstrap.servers": "127.0.0.1:1", **({} if url is None else {"schemaRegistryUrl": url})}
    file = folder / "p.yaml"
    file.write_text(json.dumps({"settings": given | (settings or {}), "pipelines": pipelines}, indent=1), "utf-8")
    return file


def register(registry: SmallRegistry, **schemas: str) -> None:
    with SchemaRegistryClient(registry.url) as client:
        for topic, schema in schemas.items():
            client.register_schema(f"{topic}-value", Schema(schema))


def test_the_settings_are_those_of_sparks_source() -> None:
    aliases = {field.alias for field in RegistrySettings.model_fields.values()}
    assert aliases == set(map(registry_spelling, REGISTRY_SETTINGS))


def test_a_missing_subject_is_a_mistake_unless_a_pipeline_registers_it(
    registry: SmallRegistry, tmp_path: Path, capsys: Output
) -> None:
    file = write(tmp_path, registry.url, lines=pipeline(name="lines"), orders=pipeline())
    assert main(["pipeline", "validate", str(file)]) == 1
    assert "p.yaml:8:4: the registry has no subject 'lines-value' for valueFormat = avro" in capsys.readouterr().err
    register(registry, lines=OLD)
    writer = pipeline(source={}, sink={**AVRO, "topic": "orders"}, name="lines")
    assert main(["pipeline", "validate", str(write(tmp_path, registry.url, lines=writer, orders=pipeline()))]) == 0
    fixed = pipeline(source={}, sink={**AVRO, "topic": "new", "autoRegisterSchemas": False})
    assert main(["pipeline", "validate", str(write(tmp_path, registry.url, lines=fixed))]) == 1
    assert "the registry has no subject 'new-value'" in capsys.readouterr().err


def test_a_registry_that_does_not_answer_is_reported_once_and_is_not_a_mistake_of_the_file(
    tmp_path: Path, capsys: Output
) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    file = write(tmp_path, url, a=pipeline(), b=pipeline(sink={**AVRO}))
    assert main(["pipeline", "validate", str(file)]) == 0
    said = capsys.readouterr()
    assert said.err.count(f"not checked: no schema registry answers at {url}") == 1
    assert "2 pipelines, no errors: a, b" in said.out
    with pytest.raises(PipelineFileError, match="no schema registry answers at"):
        ensure_schemas(read_text(file.read_bytes(), "p.yaml", tmp_path, {}))


def test_a_changed_schema_is_reported_with_its_columns(registry: SmallRegistry, tmp_path: Path, capsys: Output) -> None:
    register(registry, orders=NEW)
    file = write(tmp_path, registry.url, p=pipeline())
    StateDirectory(tmp_path / "state", "p").folder.mkdir(parents=True)
    StateDirectory(tmp_path / "state", "p").write_schemas({"source": {"valueSchema": OLD}})
    assert main(["pipeline", "validate", str(file)]) == 0
    assert (
        "p.yaml:8:4: the schema of the values has changed since the last run: column id was int and is bigint, column "
        "price double was added, column item string was removed; ottla pipeline plan shows"
    ) in capsys.readouterr().err


def test_changes_of_nested_columns_and_of_values_without_columns_are_named() -> None:
    line = {"type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string"}]}
    longer = {**line, "fields": [*line["fields"], {"name": "count", "type": "int"}]}
    before = order(("lines", {"type": "array", "items": line}), ("to", "Line"))
    now = order(("lines", {"type": "array", "items": longer}), ("to", "Line"))
    (sentence,) = find_schema_changes({"valueSchema": before}, {"valueSchema": now})
    assert sentence.endswith("column lines.element.count int was added, column to.count int was added")
    (sentence,) = find_schema_changes({"keySchema": '"int"'}, {"keySchema": '"long"'})
    assert sentence == "the schema of the keys has changed since the last run: the key was int and is bigint"
    assert list(find_schema_changes({}, {"valueSchema": now})) == []


def test_the_login_and_its_certificates_are_checked_and_not_shown(tmp_path: Path, capsys: Output) -> None:
    def mistake(url: str | None, **settings: Any) -> str:
        assert main(["pipeline", "validate", str(write(tmp_path, url, settings, p=pipeline()))]) == 1
        return capsys.readouterr().err

    (tmp_path / "pw").write_text("s3cr3t\n")
    said = mistake("http://h:1", schemaRegistryBasicAuthUserInfo="${file:pw}")
    assert "p.yaml:5:3: schemaRegistryBasicAuthUserInfo has no colon; write NAME:PASSWORD" in said
    said = mistake("h:1")
    assert "p.yaml:4:3: schemaRegistryUrl = 'h:1': must begin with http:// or https://" in said
    said = mistake(None, schemaRegistryTimeout=3)
    assert "schemaRegistryTimeout needs schemaRegistryUrl, for example http://localhost:8081" in said
    said = mistake("https://h:1", schemaRegistrySslCaLocation="ca.pem")
    assert f"p.yaml:5:3: certificates cannot be loaded (schemaRegistrySslCaLocation = {tmp_path}/ca.pem)" in said
    said = mistake("http://h:1", **{"schema.registry.url": "http://h:1"})
    assert "unknown key 'schema.registry.url'; here it is 'schemaRegistryUrl'" in said


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        (
            {"source": AVRO},
            "valueFormat avro needs valueSchema, an Avro schema as JSON, or a file of it, or a schema registry",
        ),
        ({"source": {"valueSubject": "x"}}, "option valueSubject needs schemaRegistryUrl and valueFormat = avro"),
        ({"source": {}, "sink": AVRO}, "valueFormat avro needs a schema registry: schemaRegistryUrl under settings"),
        ({"source": {}, "sink": {"valueSchema": OLD}}, "option valueSchema needs valueFormat = avro"),
        (
            {"source": {"valueFormat": "json"}},
            "needs valueSchema, for example `id bigint, name string`, or infer, or a schema",
        ),
        ({"source": {"valueFormat": "protobuf"}}, "valueFormat protobuf needs valueDescriptor, the file that"),
        ({"source": {}, "sink": {"keyFormat": "json"}}, "keyFormat json needs a schema registry: schemaRegistryUrl"),
        ({"source": {}, "sink": {"registered": True}}, "registered: true is for valueFormat json; leave it out"),
        (
            {"source": {}, "sink": {"valueFormat": "json", "valueSchema": "{}"}},
            "option valueSchema with valueFormat json needs registered: true",
        ),
    ],
)
def test_keys_that_need_a_registry_are_mistakes_without_one(
    part: dict[str, Any], sentence: str, tmp_path: Path, capsys: Output
) -> None:
    assert main(["pipeline", "validate", str(write(tmp_path, None, p=pipeline(**part)))]) == 1
    assert sentence in capsys.readouterr().err


def test_a_sink_of_avro_needs_one_topic(registry: SmallRegistry, tmp_path: Path, capsys: Output) -> None:
    router = {"type": "RegexRouter", "regex": "a", "replacement": "b"}
    routed = pipeline(source={}, sink={**AVRO, "topic": None}, transforms=[router])
    assert main(["pipeline", "validate", str(write(tmp_path, registry.url, p=routed))]) == 1
    assert "valueFormat avro needs one topic for all rows" in capsys.readouterr().err


def json_order(**properties: str) -> str:
    return json.dumps({"type": "object", "properties": {name: {"type": kind} for name, kind in properties.items()}})


def test_registered_json_is_checked_like_avro(registry: SmallRegistry, tmp_path: Path, capsys: Output) -> None:
    of_json = {"valueFormat": "json"}
    written = {"valueFormat": "json", "registered": True, "keyFormat": "avro"}
    file = write(tmp_path, registry.url, p=pipeline(source=of_json, sink=written))
    assert main(["pipeline", "validate", str(file)]) == 1
    assert "the registry has no subject 'orders-value' for valueFormat = json" in capsys.readouterr().err
    with SchemaRegistryClient(registry.url) as client:
        client.register_schema("orders-value", Schema(json_order(id="integer", price="number"), "JSON"))
    before = json.dumps({"form": "json", "schema": Schema(json_order(id="string"), "JSON").to_dict(), "message": None})
    StateDirectory(tmp_path / "state", "p").folder.mkdir(parents=True)
    StateDirectory(tmp_path / "state", "p").write_schemas({"source": {"valueSchema": before}})
    assert main(["pipeline", "validate", str(file)]) == 0
    assert (
        "since the last run: column id was string and is bigint, column price double was added"
        in capsys.readouterr().err
    )
    (tmp_path / "out.json").write_text(json_order(id="integer"))
    named = {**written, "valueSchema": "out.json", "keySchemaVersion": 1}
    registry.differences = ["TYPE_CHANGED"]
    assert main(["pipeline", "validate", str(write(tmp_path, registry.url, p=pipeline(source={}, sink=named)))]) == 1
    assert "the registry has no version 1 of subject 'orders-out-key' for keyFormat = avro" in capsys.readouterr().err
    del named["keySchemaVersion"]
    assert main(["pipeline", "validate", str(write(tmp_path, registry.url, p=pipeline(source={}, sink=named)))]) == 1
    assert "is not compatible with subject 'orders-out-value': TYPE_CHANGED" in capsys.readouterr().err
    messages = {"valueFormat": "protobuf"}
    assert main(["pipeline", "validate", str(write(tmp_path, registry.url, p=pipeline(source={}, sink=messages)))]) == 1
    assert "option valueFormat = protobuf needs valueSchema" in capsys.readouterr().err
