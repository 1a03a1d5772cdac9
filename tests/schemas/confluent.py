"""Confluent's clients and serializers, which ours are compared with."""

from __future__ import annotations

import warnings

with warnings.catch_warnings():  # authlib prefers another httpx
    warnings.simplefilter("ignore")
    from confluent_kafka.schema_registry import SchemaRegistryClient as SchemaRegistryClient
    from confluent_kafka.schema_registry import header_schema_id_serializer as header_schema_id_serializer
    from confluent_kafka.schema_registry.avro import AvroDeserializer as AvroDeserializer
    from confluent_kafka.schema_registry.avro import AvroSerializer as AvroSerializer
    from confluent_kafka.schema_registry.json_schema import JSONDeserializer as JSONDeserializer
    from confluent_kafka.schema_registry.json_schema import JSONSerializer as JSONSerializer
    from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer as ProtobufDeserializer
    from confluent_kafka.schema_registry.protobuf import ProtobufSerializer as ProtobufSerializer
    from confluent_kafka.serialization import MessageField as MessageField
    from confluent_kafka.serialization import SerializationContext as SerializationContext
