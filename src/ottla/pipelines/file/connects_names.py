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
"""Keys that say where a server is, and who logs in there."""
BROKERS = "brokers are named by bootstrap.servers, and settings of a login stand under kafka"
OF_THE_WEB = "the address is url, and a password is a header, such as headers: {Authorization: 'Bearer ${env:TOKEN}'}"
LOGINS = (("table", IN_URL), ("bootstrap.servers", BROKERS), ("url", OF_THE_WEB))
"""What such a key becomes, by a key that is known in the same place; the first that is there counts."""
ADDED = "rows are always added; which rows of an aggregation are written is the pipeline's outputMode; leave it out"
MODES = (
    ("incrementing", "incrementing and timestamp name the columns by which new rows are found; leave it out"),
    ("insert.mode", "here it is 'insert.mode'"),
    (
        "mergeSchema delete.enabled",
        "rows are added, or with key: [COLUMN] take the place of those with their key; leave it out",
    ),
    (
        "startingOffsets",
        "what becomes of records that cannot be read is errors of the pipeline, such as errors: {tolerance: all, deadLetterTopic: …}",
    ),
    ("options schema", "it is an option of Spark's reader; write options: {mode: …}"),
    ("slot.name", "the rows that are there come first, and then what changes; leave it out"),
    ("rowsPerSecond", None),
    ("url schema", None),
)
"""What `mode` is where all of some keys are known; it has many meanings, and in some sources none."""
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
    if name == "mode":
        return next((told for keys, told in MODES if set(keys.split()) <= set(known)), ADDED)
    if name in OF_A_LOGIN:
        return next((told for key, told in LOGINS if key in known), IN_URL if "." in name else None)
    return ELSEWHERE.get(name) or next((told for begin, told in BEGINNINGS.items() if name.startswith(begin)), None)


STORES = {
    "s3": "s3a://BUCKET/FOLDER",
    "gcs": "gs://BUCKET/FOLDER",
    "googlecloudstorage": "gs://BUCKET/FOLDER",
    "azure": "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER",
    "hdfs": "hdfs://HOST/FOLDER",
}
"""Stores of files that connectors of Connect are named for, and addresses in them as Hadoop has them."""
JAR = "settings: {spark: {spark.jars.packages: …}} brings the jar that reaches it"


def store_for(name: str) -> str | None:
    """What stands for a connector to a store of files: the type `files`, with such a path."""
    address = next((one for part, one in STORES.items() if part in name.lower()), None)
    return None if address is None else f"here it is 'files' with path: {address}; {JAR}"


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
