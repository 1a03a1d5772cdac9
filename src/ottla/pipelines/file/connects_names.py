"""Names of Kafka Connect and their names here, for error messages only: no name is replaced silently.

The names are those of Kafka Connect, Confluent's JDBC connector, Debezium, and Spark's own Kafka source.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

KEYS = {
    "connection.url": "url",
    "http.url": "url",
    "table.whitelist": "table",
    "table.include.list": "table",
    "table.name.format": "table",
    "collection.name.format": "table",
    "column.include.list": "columns",
    "incrementing.column.name": "incrementing",
    "timestamp.column.name": "timestamp",
    "primary.key.fields": "pk.fields",
    "max.batch.size": "batch.max.rows",
    "topics": "topic",
    "subscribe": "topic",
    "topics.regex": "topicPattern",
    "subscribePattern": "topicPattern",
    "kafka.bootstrap.servers": "bootstrap.servers",
    "value.converter": "valueFormat",
    "format.class": "format",
    "file": "path",
    "schema.registry.url": "schemaRegistryUrl",
    "schema.registry.basic.auth.user.info": "schemaRegistryBasicAuthUserInfo",
    "errors.tolerance": "tolerance",
    "errors.deadletterqueue.topic.name": "deadLetterTopic",
}
"""Keys with another name in the same place."""
IN_URL = "user, password and server are part of url, for example postgresql://user:${env:PW}@host/name"
REGISTRY = "name the schema registry once, for all topics: schemaRegistryUrl under settings"
DEAD_LETTERS = "write errors: {tolerance: all, deadLetterTopic: …} in the pipeline"
NO_SCHEMAS = "values do not include their schema here; leave it out"
ELSEWHERE = {
    "connector.class": "the type of the source or sink is the key type",
    "tasks.max": "Spark divides the work by itself; leave it out",
    "topic.prefix": "the sink names its topic",
    "plugin.name": "it is always pgoutput; leave it out",
    "snapshot.mode": "existing rows are read first, and then changes; leave it out",
    "key.converter": "the sink's key names a column; leave it out",
    "key.converter.schemas.enable": NO_SCHEMAS,
    "value.converter.schemas.enable": NO_SCHEMAS,
    "key.converter.schema.registry.url": REGISTRY,
    "value.converter.schema.registry.url": REGISTRY,
    "schemaRegistryUrl": REGISTRY,
    "poll.interval.ms": "the interval is the pipeline's trigger, for example `1 second`",
    "errors.tolerance": DEAD_LETTERS,
    "errors.deadletterqueue.topic.name": DEAD_LETTERS,
    "errors.log.enable": "dead letters have their cause, and errors that stop a pipeline are printed; leave it out",
}
"""Keys that are configured in another place, or not at all."""
OF_A_LOGIN = frozenset(
    [
        "hostname",
        "host",
        "server",
        "port",
        "user",
        "username",
        "password",
        "passwd",
        "dbname",
        "database",
        "db",
        "database.name",
        "database.hostname",
        "database.port",
        "database.user",
        "database.password",
        "database.dbname",
        "connection.user",
        "connection.password",
    ]
)
"""Keys for the address of a server and the login there."""
BROKERS = "the brokers are in bootstrap.servers, and settings of a login under kafka"
OF_THE_WEB = "the address is url, and a password is a header, such as headers: {Authorization: 'Bearer ${env:TOKEN}'}"
LOGINS = (("table", IN_URL), ("bootstrap.servers", BROKERS), ("url", OF_THE_WEB))
"""The text for a login key, by a key that is valid in the same place; the first match applies."""
ADDED = "rows are always added; the rows of an aggregation are chosen by the pipeline's outputMode; leave it out"
MODES = (
    ("incrementing", "incrementing and timestamp name the columns that identify new rows; leave it out"),
    ("insert.mode", "here it is 'insert.mode'"),
    (
        "mergeSchema delete.enabled",
        "rows are added, or with key: [COLUMN] take the place of those with their key; leave it out",
    ),
    (
        "startingOffsets",
        "records that cannot be read are handled by errors of the pipeline, for example errors: {tolerance: all, deadLetterTopic: …}",
    ),
    ("options schema", "it is an option of Spark's reader; write options: {mode: …}"),
    ("slot.name", "existing rows are read first, and then changes; leave it out"),
    ("rowsPerSecond", None),
    ("url schema", None),
)
"""The texts for `mode`, by the keys that are valid in the same place: the key has a different meaning in each
connector.
"""
BEGINNINGS = {
    "transforms.": "transforms is a list, such as transforms: [{type: MaskField, fields: card}]",
    "predicates.": "predicates is a mapping, such as predicates: {gone: {type: RecordIsTombstone}}",
    "consumer.override.": "settings of clients are under kafka, without the prefix",
    "producer.override.": "settings of clients are under kafka, without the prefix",
}
TYPES = {
    "jdbc": "database",
    "postgresconnector": "postgres-cdc",
    "debezium": "postgres-cdc",
    "postgres": "database",
    "mysql": "database",
    "mariadb": "database",
    "sqlite": "database",
    "kafka": "topic",
    "http": "http",
    "file": "files",
    "csv": "files",
    "json": "files",
    "parquet": "files",
}
"""Parts of the names of types and connector classes, and the type here; the first match applies."""
CLASS = "connector.class"


def remedy_for_key(name: str, known: Collection[str]) -> str | None:
    """Return the text for a key of Kafka Connect, given the valid keys; None if it is not one."""
    here = KEYS.get(name)
    if here is not None and here in known:
        return f"here it is {here!r}"
    if name == "mode":
        return next((text for keys, text in MODES if set(keys.split()) <= set(known)), ADDED)
    if name in OF_A_LOGIN:
        return next((text for key, text in LOGINS if key in known), IN_URL if "." in name else None)
    return ELSEWHERE.get(name) or next((text for begin, text in BEGINNINGS.items() if name.startswith(begin)), None)


STORES = {
    "s3": "s3a://BUCKET/FOLDER",
    "gcs": "gs://BUCKET/FOLDER",
    "googlecloudstorage": "gs://BUCKET/FOLDER",
    "azure": "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER",
    "hdfs": "hdfs://HOST/FOLDER",
}
"""Stores of files with a connector for Kafka Connect, and an address in each as Hadoop writes it."""
JAR = "settings: {spark: {spark.jars.packages: …}} loads the jar for it"


def store_for(name: str) -> str | None:
    """Return the text for a connector to a store of files: the type `files` with such a path."""
    address = next((one for part, one in STORES.items() if part in name.lower()), None)
    return None if address is None else f"here it is 'files' with path: {address}; {JAR}"


def type_for(name: str, known: Iterable[str]) -> str | None:
    """Return the type for the name of a connector, if it is in `known`."""
    there = set(known)
    return next((ours for part, ours in TYPES.items() if part in name.lower() and ours in there), None)


def as_pipeline(connector: str, sources: Iterable[str], sinks: Iterable[str]) -> str:
    """Return the beginning of a pipeline for a connector of this class."""
    topic = "{type: topic, topic: …}"
    if "sink" in connector.lower():
        return f"{{source: {topic}, sink: {{type: {type_for(connector, sinks) or '…'}, …}}}}"
    return f"{{source: {{type: {type_for(connector, sources) or '…'}, …}}, sink: {topic}}}"


def class_of(value: Any) -> str | None:
    """Return the class in a connector configuration of Kafka Connect, in JSON or in lines of `name=value`; None if it is not one."""
    if isinstance(value, str):
        before, _, after = value.partition(f"{CLASS}=")
        return after.split()[0] if after.split() and (not before or before[-1].isspace()) else None
    if isinstance(value, dict):
        inner = value.get("config")
        found = (inner if isinstance(inner, dict) else value).get(CLASS)
        return found if isinstance(found, str) else None
    return None
