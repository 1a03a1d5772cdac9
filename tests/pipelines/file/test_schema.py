"""The JSON Schema says what the models take."""

from __future__ import annotations

from ottla.pipelines.file.schema import json_schema
from ottla.pipelines.sinks import SINKS
from ottla.pipelines.sources import SOURCES
from ottla.pipelines.transforms import CONNECT, PREDICATES

SCHEMA = json_schema()


def keys(model: str) -> set[str]:
    return set(SCHEMA["$defs"][model]["properties"])


def test_every_source_sink_transform_and_predicate_is_in_it_with_its_keys() -> None:
    for known in (SOURCES, SINKS, CONNECT, PREDICATES):
        for model in known.values():
            assert keys(model.__name__) == {field.alias or name for name, field in model.model_fields.items()}
            assert SCHEMA["$defs"][model.__name__]["additionalProperties"] is False


def test_options_of_the_spark_source_have_descriptions() -> None:
    assert "read_committed" not in keys("TopicSource")
    assert {"valueFormat", "valueSchema", "maxOffsetsPerTrigger", "bootstrap.servers"} <= keys("TopicSource")
    described = SCHEMA["$defs"]["TopicSource"]["properties"]["maxOffsetsPerTrigger"]["description"]
    assert described.startswith("The most offsets of a micro-batch")


def test_a_transform_is_named_as_in_connect_with_its_part_and_package_or_without() -> None:
    names = SCHEMA["$defs"]["InsertField"]["properties"]["type"]["enum"]
    assert {"InsertField", "InsertField$Key", "org.apache.kafka.connect.transforms.InsertField$Value"} <= set(names)
    assert "InsertHeader$Key" not in SCHEMA["$defs"]["InsertHeader"]["properties"]["type"]["enum"]
