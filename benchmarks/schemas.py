"""Compare registered values with confluent-kafka: dicts and columns to Avro, and Avro, JSON and Protobuf to dicts and columns.

The values have ten fields, among them a nested record, an array, an enum, a map and a union with null.
"""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

import ottla
from benchmarks.race import Contender, race
from benchmarks.registry_thread import served_registry
from ottla.records.binary_column import BinaryColumn, column_of
from ottla.schemas import (
    AvroDeserializer,
    AvroSerializer,
    JSONDeserializer,
    JSONSerializer,
    MessageField,
    ProtobufDeserializer,
    ProtobufSerializer,
    SchemaRegistryClient,
    SerializationContext,
)
from ottla.schemas.avro_columns import AvroColumns
from ottla.schemas.avro_schema import parse_avro
from ottla.schemas.registered_rows import encode_columns
from ottla.schemas.registered_tables import FieldFormat, RegisteredTables
from ottla.schemas.values import Schema

with warnings.catch_warnings():  # authlib prefers another httpx
    warnings.simplefilter("ignore")
    from confluent_kafka.schema_registry import SchemaRegistryClient as TheirClient
    from confluent_kafka.schema_registry.avro import AvroDeserializer as TheirDeserializer
    from confluent_kafka.schema_registry.avro import AvroSerializer as TheirSerializer
    from confluent_kafka.schema_registry.json_schema import JSONDeserializer as TheirJSONDeserializer
    from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer as TheirProtobufDeserializer

PLACE = {
    "type": "record",
    "name": "Place",
    "fields": [{"name": "street", "type": "string"}, {"name": "zip", "type": "int"}],
}
FIELDS = [
    {"name": "id", "type": "long"},
    {"name": "customer", "type": "string"},
    {"name": "price", "type": "double"},
    {"name": "count", "type": ["null", "int"]},
    {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["BOOK", "TEA", "PEN"]}},
    {"name": "tags", "type": {"type": "array", "items": "string"}},
    {"name": "place", "type": PLACE},
    {"name": "options", "type": {"type": "map", "values": "int"}},
    {"name": "is_paid", "type": "boolean"},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
]
ORDER = json.dumps({"type": "record", "name": "Order", "fields": FIELDS})
COUNT = 20_000


def orders() -> list[dict[str, Any]]:
    return [
        {
            "id": number,
            "customer": f"customer {number % 1000}",
            "price": number / 7,
            "count": None if number % 3 else number,
            "kind": ("BOOK", "TEA", "PEN")[number % 3],
            "tags": ["new", "gift"][: number % 3],
            "place": {"street": f"street {number % 100}", "zip": number % 10_000},
            "options": {"size": number % 5},
            "is_paid": number % 2 == 0,
            "at": 1_700_000_000_000 + number,
        }
        for number in range(COUNT)
    ]


@contextmanager
def registry() -> Iterator[str]:
    """A registry on a broker; the address."""
    with (
        tempfile.TemporaryDirectory() as folder,
        ottla.Broker(folder, process=True) as broker,
        served_registry(broker.bootstrap_servers) as url,
    ):
        yield url


def repeat(call: Callable[[Any, Any], object], values: list[Any], context: Any) -> Callable[[], int]:
    """Return work that calls a function for each value."""

    def work() -> int:
        for value in values:
            call(value, context)
        return len(values)

    return work


def encode_table(client: SchemaRegistryClient, table: pa.Table) -> pa.ChunkedArray[Any]:
    """Encode a table as `send_table` does."""
    fields = {"value": ("value", "avro", ORDER)}
    return client.run(encode_columns(table, "orders", fields, client.calls)).column("value")


JSON_ORDER = {
    "type": "object",
    "title": "Order",
    "properties": {
        "id": {"type": "integer"},
        "customer": {"type": "string"},
        "price": {"type": "number"},
        "count": {"type": ["integer", "null"]},
        "kind": {"enum": ["BOOK", "TEA", "PEN"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "place": {"type": "object", "properties": {"street": {"type": "string"}, "zip": {"type": "integer"}}},
        "options": {"type": "object", "additionalProperties": {"type": "integer"}},
        "is_paid": {"type": "boolean"},
        "at": {"type": "integer"},
    },
}


def message_class() -> Any:
    """Return the class of the orders as Protobuf messages."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="bench/order.proto", package="bench", syntax="proto3")
    kind = file.enum_type.add(name="Kind")
    for number, symbol in enumerate(("BOOK", "TEA", "PEN")):
        kind.value.add(name=symbol, number=number)
    order = file.message_type.add(name="Order")
    place = order.nested_type.add(name="Place")
    place.field.add(name="street", number=1, type=kinds.TYPE_STRING, label=1)
    place.field.add(name="zip", number=2, type=kinds.TYPE_INT32, label=1)
    entry = order.nested_type.add(name="OptionsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=kinds.TYPE_STRING, label=1)
    entry.field.add(name="value", number=2, type=kinds.TYPE_INT32, label=1)
    order.field.add(name="id", number=1, type=kinds.TYPE_INT64, label=1)
    order.field.add(name="customer", number=2, type=kinds.TYPE_STRING, label=1)
    order.field.add(name="price", number=3, type=kinds.TYPE_DOUBLE, label=1)
    order.oneof_decl.add(name="_count")
    order.field.add(name="count", number=4, type=kinds.TYPE_INT32, label=1, proto3_optional=True, oneof_index=0)
    order.field.add(name="kind", number=5, type=kinds.TYPE_ENUM, type_name=".bench.Kind", label=1)
    order.field.add(name="tags", number=6, type=kinds.TYPE_STRING, label=3)
    order.field.add(name="place", number=7, type=kinds.TYPE_MESSAGE, type_name=".bench.Order.Place", label=1)
    order.field.add(name="options", number=8, type=kinds.TYPE_MESSAGE, type_name=".bench.Order.OptionsEntry", label=3)
    order.field.add(name="is_paid", number=9, type=kinds.TYPE_BOOL, label=1)
    order.field.add(name="at", number=10, type=kinds.TYPE_INT64, label=1)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("bench.Order"))


def decode_table(client: SchemaRegistryClient, column: BinaryColumn, form: str, version: Any) -> Callable[[], int]:
    """Return work that decodes a column as `poll_arrow` does."""
    tables = RegisteredTables(client.calls)

    def work() -> int:
        values, errors = client.run(tables.decode_values(column, None, "value", FieldFormat(form, version)))
        if errors:
            raise SystemExit(f"the columns could not be read: {errors}")
        return len(values)

    return work


def race_json(client: SchemaRegistryClient, rows: list[dict[str, Any]]) -> None:
    context = SerializationContext("orders-json", MessageField.VALUE)
    text = json.dumps(JSON_ORDER)
    serialize = JSONSerializer(text, client, conf={"validate": False})
    values = [serialize(row, context) for row in rows]
    conf = {"validate": False}
    race(
        "registered JSON to Arrow columns or dicts",
        [
            Contender("ottla.schemas, Arrow", decode_table(client, column_of(values), "json", text)),
            Contender("ottla.schemas, dicts", repeat(JSONDeserializer(text, conf=conf), values, context)),
            Contender("confluent-kafka, dicts", repeat(TheirJSONDeserializer(text, conf=conf), values, context)),
        ],
        unit="values/s",
    )


def race_protobuf(client: SchemaRegistryClient, rows: list[dict[str, Any]]) -> None:
    context = SerializationContext("orders-protobuf", MessageField.VALUE)
    kind = message_class()
    serialize = ProtobufSerializer(kind, client)
    values = [serialize(kind(**row), context) for row in rows]
    reader = client.get_latest_version("orders-protobuf-value", "serialized").schema
    race(
        "registered Protobuf to Arrow columns or messages",
        [
            Contender("ottla.schemas, Arrow", decode_table(client, column_of(values), "protobuf", reader)),
            Contender("ottla.schemas, messages", repeat(ProtobufDeserializer(kind), values, context)),
            Contender(
                "confluent-kafka, messages",
                repeat(TheirProtobufDeserializer(kind, {"use.deprecated.format": False}), values, context),
            ),
        ],
        unit="values/s",
    )


def main() -> None:
    rows = orders()
    context = SerializationContext("orders", MessageField.VALUE)
    with registry() as url, SchemaRegistryClient({"url": url}) as client, TheirClient({"url": url}) as their_client:
        serialize, their_serialize = AvroSerializer(client, ORDER), TheirSerializer(their_client, ORDER)
        read, their_read = AvroDeserializer(client), TheirDeserializer(their_client)
        values = [serialize(row, context) for row in rows]
        if values[0] != their_serialize(rows[0], context) or read(values[5], context) != their_read(values[5], context):
            raise SystemExit("the contenders do not agree")
        schema = parse_avro(Schema(ORDER))
        columns = AvroColumns(schema)
        columns.add_writer(client.register_schema("orders-value", Schema(ORDER)), schema)
        column = column_of(values)
        if columns.decode(column)[1]:
            raise SystemExit("the columns could not be read")
        race(
            "dicts to registered Avro",
            [
                Contender("ottla.schemas", repeat(serialize, rows, context)),
                Contender("confluent-kafka", repeat(their_serialize, rows, context)),
            ],
            unit="values/s",
        )
        table = pa.table({"value": pa.array(rows, columns.kind)})
        if encode_table(client, table).to_pylist() != values:
            raise SystemExit("the encoded column differs")

        def serialize_rows() -> int:
            return len([serialize(row, context) for row in table.column("value").to_pylist(maps_as_pydicts="strict")])

        def their_serialize_rows() -> int:
            return len(
                [their_serialize(row, context) for row in table.column("value").to_pylist(maps_as_pydicts="strict")]
            )

        race(
            "an Arrow table to registered Avro",
            [
                Contender("ottla.schemas, columns", lambda: len(encode_table(client, table))),
                Contender("ottla.schemas, dicts", serialize_rows),
                Contender("confluent-kafka, dicts", their_serialize_rows),
            ],
            unit="values/s",
        )
        race(
            "registered Avro to Arrow columns or dicts",
            [
                Contender("ottla.schemas, Arrow", lambda: len(columns.decode(column)[0])),
                Contender("ottla.schemas, dicts", repeat(read, values, context)),
                Contender("confluent-kafka, dicts", repeat(their_read, values, context)),
            ],
            unit="values/s",
        )
        race_json(client, rows)
        race_protobuf(client, rows)


if __name__ == "__main__":
    main()
