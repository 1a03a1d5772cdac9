"""Finds the reader's schemas of registered keys and values, on the driver, once for a query."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from ottla.errors import ConfigError, SerializationError
from ottla.spark.columns.value_formats import Coded, avro_schema
from ottla.spark.options import SourceOptions, is_registered
from ottla.spark.ranges.offset_reader import OffsetReader

if TYPE_CHECKING:
    from ottla.schemas import Schema, SchemaRegistryClient

NOT_FOUND = 404
Pending = Mapping[str, "Schema | None"]
NO_SCHEMAS: Pending = MappingProxyType({})


def find_readers(options: SourceOptions, pending: Pending = NO_SCHEMAS) -> Mapping[str, str]:
    """Return the reader's schema of the key and of the value, if they are registered.

    `pending` has schemas that will be registered for subjects that do not exist yet. A schema that is not known yet, None,
    is left out.
    """
    if not options.registry:
        return {}
    from ottla.spark.formats.registered import describe_reader, open_registry, readable_schema

    client, _ = open_registry(options.registry)
    # A worker process of Spark may be used for several queries, and versions may be registered in between.
    client.clear_latest_caches()
    readers: dict[str, str] = {}
    for name in ("key", "value"):
        coded = Coded(name, options)
        if not is_registered(options, name):
            continue
        if coded.option("reader") is not None:
            readers[name] = coded.option("reader")
            continue
        where, schema = find_reader(coded, client, pending)
        if schema is None:
            continue
        try:
            form = coded.option("format")
            if form == "avro":
                readers[name] = readable_schema(schema, client)
            else:
                readers[name] = describe_reader(form, schema, coded.option("message"), client)
        except (ConfigError, SerializationError) as error:
            raise ConfigError(f"{where} cannot be the reader's schema: {error}") from None
    return readers


def find_reader(coded: Coded, client: SchemaRegistryClient, pending: Pending) -> tuple[str, Schema | None]:
    """Return the given or registered schema, and its description for errors."""
    from ottla.schemas import Schema

    if coded.option("schema") is not None:
        return f"option {coded.spelled('schema')}", Schema(avro_schema(coded))
    version = coded.option("schema_version")
    subjects = subjects_of(coded)
    found = {subject: find_version(coded, client, subject, version, pending) for subject in subjects}
    first = subjects[0]
    for subject, schema in found.items():
        if schema != found[first]:
            raise ConfigError(
                f"the subjects {first!r} and {subject!r} have different schemas, which one column cannot hold; read the "
                f"topics in separate queries, or set {coded.spelled('schema')} or {coded.spelled('subject')}"
            )
    return f"the schema of subject {first!r}", found[first]


def subjects_of(coded: Coded) -> list[str]:
    """Return the given subject, or the subjects of all topics."""
    if coded.option("subject") is not None:
        return [coded.option("subject")]
    topics = coded.options.subscribe
    if topics is None:
        with OffsetReader(coded.options) as kafka:
            topics = tuple(sorted({tp.topic for tp in kafka.partitions()}))
    if not topics:
        raise ConfigError(
            f"there is no topic yet, so there is no subject for the reader's schema; set {coded.spelled('subject')} or "
            f"{coded.spelled('schema')}"
        )
    return [f"{topic}-{coded.name}" for topic in topics]


def find_version(
    coded: Coded, client: SchemaRegistryClient, subject: str, version: int | None, pending: Pending
) -> Schema | None:
    """Return a version of the subject, or its newest one."""
    from ottla.schemas import SchemaRegistryError
    from ottla.schemas.serde import reject_rules

    try:
        form = coded.option("format")
        fetched = "serialized" if form == "protobuf" else None
        if version is None:
            registered = client.get_latest_version(subject, fetched)
        else:
            registered = client.get_version(subject, version, fmt=fetched)
    except SchemaRegistryError as error:
        if error.http_status_code != NOT_FOUND:
            raise
        if version is None and subject in pending:
            expected = pending[subject]
            if expected is not None:
                check_form(coded, subject, expected)
            return expected
        which = f"subject {subject!r}" if version is None else f"version {version} of subject {subject!r}"
        raise ConfigError(
            f"the registry has no {which} for {coded.spelled('format')} = {form}; register a schema, or set "
            f"{coded.spelled('subject')} or {coded.spelled('schema')}"
        ) from None
    check_form(coded, subject, registered.schema)
    reject_rules(registered.schema, subject)
    return registered.schema


def check_form(coded: Coded, subject: str, schema: Schema) -> None:
    """Raise ConfigError for a schema of another format."""
    form = coded.option("format")
    if schema.schema_type != form.upper():
        raise ConfigError(
            f"the schema of subject {subject!r} is {schema.schema_type}, and {coded.spelled('format')} = {form} "
            f"reads {form.upper()}; read the values as raw, or set another subject"
        )
