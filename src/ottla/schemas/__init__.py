"""Clients, serializers and deserializers for a schema registry.

Names and options are those of `confluent_kafka.schema_registry`. Requires the extra `schemas`. The names load when they
are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.lazy_names import loader_of

HOME = {
    "SchemaRegistryClient": "ottla.schemas.clients",
    "AsyncSchemaRegistryClient": "ottla.schemas.clients",
    "SchemaRegistryError": "ottla.schemas.errors",
    "Schema": "ottla.schemas.values",
    "SchemaReference": "ottla.schemas.values",
    "RegisteredSchema": "ottla.schemas.values",
    "SchemaVersion": "ottla.schemas.values",
    "ServerConfig": "ottla.schemas.values",
    "SerializationContext": "ottla.schemas.context",
    "MessageField": "ottla.schemas.context",
    "topic_subject_name_strategy": "ottla.schemas.subjects",
    "record_subject_name_strategy": "ottla.schemas.subjects",
    "topic_record_subject_name_strategy": "ottla.schemas.subjects",
    "reference_subject_name_strategy": "ottla.schemas.subjects",
    "SchemaId": "ottla.schemas.wire",
    "prefix_schema_id_serializer": "ottla.schemas.wire",
    "header_schema_id_serializer": "ottla.schemas.wire",
    "prefix_schema_id_deserializer": "ottla.schemas.wire",
    "dual_schema_id_deserializer": "ottla.schemas.wire",
    "AvroSerializer": "ottla.schemas.avro",
    "AvroDeserializer": "ottla.schemas.avro",
    "AsyncAvroSerializer": "ottla.schemas.avro",
    "AsyncAvroDeserializer": "ottla.schemas.avro",
    "JSONSerializer": "ottla.schemas.json_schema",
    "JSONDeserializer": "ottla.schemas.json_schema",
    "AsyncJSONSerializer": "ottla.schemas.json_schema",
    "AsyncJSONDeserializer": "ottla.schemas.json_schema",
    "ProtobufSerializer": "ottla.schemas.protobuf",
    "ProtobufDeserializer": "ottla.schemas.protobuf",
    "AsyncProtobufSerializer": "ottla.schemas.protobuf",
    "AsyncProtobufDeserializer": "ottla.schemas.protobuf",
}
"""The module of each public name."""
__all__ = list(HOME)

__getattr__ = loader_of(__name__, HOME)

if TYPE_CHECKING:
    from ottla.schemas.avro import AsyncAvroDeserializer as AsyncAvroDeserializer
    from ottla.schemas.avro import AsyncAvroSerializer as AsyncAvroSerializer
    from ottla.schemas.avro import AvroDeserializer as AvroDeserializer
    from ottla.schemas.avro import AvroSerializer as AvroSerializer
    from ottla.schemas.clients import AsyncSchemaRegistryClient as AsyncSchemaRegistryClient
    from ottla.schemas.clients import SchemaRegistryClient as SchemaRegistryClient
    from ottla.schemas.context import MessageField as MessageField
    from ottla.schemas.context import SerializationContext as SerializationContext
    from ottla.schemas.errors import SchemaRegistryError as SchemaRegistryError
    from ottla.schemas.json_schema import AsyncJSONDeserializer as AsyncJSONDeserializer
    from ottla.schemas.json_schema import AsyncJSONSerializer as AsyncJSONSerializer
    from ottla.schemas.json_schema import JSONDeserializer as JSONDeserializer
    from ottla.schemas.json_schema import JSONSerializer as JSONSerializer
    from ottla.schemas.protobuf import AsyncProtobufDeserializer as AsyncProtobufDeserializer
    from ottla.schemas.protobuf import AsyncProtobufSerializer as AsyncProtobufSerializer
    from ottla.schemas.protobuf import ProtobufDeserializer as ProtobufDeserializer
    from ottla.schemas.protobuf import ProtobufSerializer as ProtobufSerializer
    from ottla.schemas.subjects import record_subject_name_strategy as record_subject_name_strategy
    from ottla.schemas.subjects import reference_subject_name_strategy as reference_subject_name_strategy
    from ottla.schemas.subjects import topic_record_subject_name_strategy as topic_record_subject_name_strategy
    from ottla.schemas.subjects import topic_subject_name_strategy as topic_subject_name_strategy
    from ottla.schemas.values import RegisteredSchema as RegisteredSchema
    from ottla.schemas.values import Schema as Schema
    from ottla.schemas.values import SchemaReference as SchemaReference
    from ottla.schemas.values import SchemaVersion as SchemaVersion
    from ottla.schemas.values import ServerConfig as ServerConfig
    from ottla.schemas.wire import SchemaId as SchemaId
    from ottla.schemas.wire import dual_schema_id_deserializer as dual_schema_id_deserializer
    from ottla.schemas.wire import header_schema_id_serializer as header_schema_id_serializer
    from ottla.schemas.wire import prefix_schema_id_deserializer as prefix_schema_id_deserializer
    from ottla.schemas.wire import prefix_schema_id_serializer as prefix_schema_id_serializer
