"""The formats of schemas: Avro, JSON Schema and Protobuf, each behind the same small interface."""
