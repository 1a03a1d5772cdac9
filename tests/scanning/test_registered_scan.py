"""`ottla.scan` of values that begin with the id of a registered schema."""

from __future__ import annotations

import json
from collections.abc import Iterator

import polars as pl
import pytest

import ottla
from ottla import Producer
from ottla.errors import ConfigError, SerializationError
from ottla.schemas import AvroSerializer, SchemaRegistryClient
from tests.schemas.small_registry import SmallRegistry, small_registry


def order(*fields: tuple[str, str]) -> str:
    """An Avro record."""
    return json.dumps(
        {"type": "record", "name": "Order", "fields": [{"name": name, "type": kind} for name, kind in fields]}
    )


@pytest.fixture
def registry() -> Iterator[SmallRegistry]:
    with small_registry() as served:
        yield served


def send(servers: str, registry: SmallRegistry, topic: str, *ids: int) -> None:
    with SchemaRegistryClient(registry.url) as client:
        serializer = AvroSerializer(client, order(("id", "long"), ("item", "string")))
        with Producer(bootstrap_servers=servers, value_serializer=serializer) as producer:
            for number in ids:
                producer.send(topic, {"id": number, "item": "tea"})


def test_registered_values_are_structs_whose_fields_can_be_filtered(servers: str, registry: SmallRegistry) -> None:
    send(servers, registry, "registered", 1, 2, 3)
    lazy = ottla.scan("registered", bootstrap_servers=servers, value_format="avro", registry=registry.url)
    item = pl.col("value").struct.field("id")
    assert lazy.collect_schema()["value"] == pl.Struct({"id": pl.Int64, "item": pl.String})
    assert lazy.filter(item > 1).select(item).collect()["id"].to_list() == [2, 3]
    newer = order(("id", "long"))
    narrow = ottla.scan(
        "registered", bootstrap_servers=servers, value_format="avro", registry=registry.url, value_schema=newer
    )
    assert narrow.select("value").collect().unnest("value").columns == ["id"]


def test_mistakes_with_schemas_are_sentences(servers: str, registry: SmallRegistry) -> None:
    with Producer(bootstrap_servers=servers) as producer:
        producer.send("plain", b"not avro").result(10)
    lazy = ottla.scan("plain", bootstrap_servers=servers, value_format="avro", registry=registry.url)
    with pytest.raises((ConfigError, pl.exceptions.ComputeError), match="the registry has no subject 'plain-value'"):
        lazy.collect_schema()
    both = ottla.scan(["plain", "empty"], bootstrap_servers=servers, value_format="avro", registry=registry.url)
    with pytest.raises((ConfigError, pl.exceptions.ComputeError), match="with 2 topics needs one reader's schema"):
        both.collect_schema()
    given = ottla.scan(
        "plain",
        bootstrap_servers=servers,
        value_format="avro",
        registry=registry.url,
        value_schema=order(("id", "long")),
    )
    with pytest.raises((SerializationError, pl.exceptions.ComputeError), match="the value at offset 0 of plain-0"):
        given.collect()
