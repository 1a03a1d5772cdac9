"""What Kafka Connect's users write, and what it is called here: for sentences alone, nothing is taken for something else.

Names are those of Connect itself, of Confluent's JDBC connector, of Debezium, and of Spark's own source of topics.
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
    "errors.tolerance": "tolerance",
    "errors.deadletterqueue.topic.name": "deadLetterTopic",
}
"""Keys that have another name in the same place."""
IN_URL = "the user, the password and the server stand in url, such as postgresql://user:${env:PW}@host/name"
LETTERS = "write errors: {tolerance: all, deadLetterTopic: …} in the pipeline"
NO_SCHEMAS = "values bring no schema along here; leave it out"
ELSEWHERE = {
    "connector.class": "source and sink say what they are by their type",
    "tasks.max": "Spark divides the work by itself; leave it out",
    "connection.user": IN_URL,
    "connection.password": IN_URL,
    "database.hostname": IN_URL,
    "database.port": IN_URL,
    "database.user": IN_URL,
    "database.password": IN_URL,
    "database.dbname": IN_URL,
    "mode": "incrementing and timestamp name the columns by which new rows are found; leave it out",
    "topic.prefix": "the sink names its topic",
    "plugin.name": "it is always pgoutput; leave it out",
    "snapshot.mode": "the rows that are there come first, and then what changes; leave it out",
    "key.converter": "the sink's key names a column; leave it out",
    "key.converter.schemas.enable": NO_SCHEMAS,
    "value.converter.schemas.enable": NO_SCHEMAS,
    "poll.interval.ms": "how often it looks is the pipeline's trigger, such as `1 second`",
    "errors.tolerance": LETTERS,
    "errors.deadletterqueue.topic.name": LETTERS,
    "errors.log.enable": "dead letters bear their reasons, and what stops a pipeline is told; leave it out",
}
"""Keys of what is said in another place, or not at all."""
BEGINNINGS = {
    "transforms.": "transforms is a list, such as transforms: [{type: MaskField, fields: card}]",
    "predicates.": "predicates is a mapping, such as predicates: {gone: {type: RecordIsTombstone}}",
    "consumer.override.": "settings of clients stand under kafka, without what comes before their name",
    "producer.override.": "settings of clients stand under kafka, without what comes before their name",
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
"""What the name of a type or of a connector's class has in it, and which type it is here; the first that fits."""
CLASS = "connector.class"


def remedy_for_key(name: str, known: Collection[str]) -> str | None:
    """What a key of Connect's is here, where there are these keys."""
    here = KEYS.get(name)
    if here is not None and here in known:
        return f"here it is {here!r}"
    return ELSEWHERE.get(name) or next((told for begin, told in BEGINNINGS.items() if name.startswith(begin)), None)


def type_for(name: str, known: Iterable[str]) -> str | None:
    """The type that is meant by a connector's, if it is one of these."""
    there = set(known)
    return next((ours for part, ours in TYPES.items() if part in name.lower() and ours in there), None)


def as_pipeline(connector: str, sources: Iterable[str], sinks: Iterable[str]) -> str:
    """How a pipeline begins that does what a connector of this class does."""
    topic = "{type: topic, topic: …}"
    if "sink" in connector.lower():
        return f"{{source: {topic}, sink: {{type: {type_for(connector, sinks) or '…'}, …}}}}"
    return f"{{source: {{type: {type_for(connector, sources) or '…'}, …}}, sink: {topic}}}"


def class_of(value: Any) -> str | None:
    """The class of a whole configuration of a connector's, as Connect has it in JSON or in lines of `name=value`."""
    if isinstance(value, str):
        before, _, after = value.partition(f"{CLASS}=")
        return after.split()[0] if after.split() and (not before or before[-1].isspace()) else None
    if isinstance(value, dict):
        inner = value.get("config")
        found = (inner if isinstance(inner, dict) else value).get(CLASS)
        return found if isinstance(found, str) else None
    return None
