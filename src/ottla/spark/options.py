"""The options of Spark's source and sink, with the names of the official connector, case-insensitive.

The two classes name, type and document the options. This module uses neither Kafka nor Spark. Each mistake in an option
is one sentence in a ConfigError.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, TypeVar

from ottla.client.config.common_config import CommonConfig
from ottla.client.config.synonyms import translate_names
from ottla.config import Between, Option, Password, convert, options_of
from ottla.errors import ConfigError
from ottla.settings_class import beside, changed, settings

O = TypeVar("O", "SourceOptions", "SinkOptions")  # noqa: E741  -- the letter of the thing

Positive = Annotated[int, Between(1)]
AtLeastZero = Annotated[int, Between(0)]

FormatName = Literal["raw", "string", "json", "avro", "protobuf"]

PREFIX = "kafka."
SERVERS = "bootstrap.servers"
SECRETS = frozenset(option.name for option in options_of(CommonConfig) if "Password" in str(option.type))
SPARKS_OWN = frozenset({"checkpointlocation", "queryname"})
"""Options that Spark adds to the user's."""
CATALOG = "provider"
"""The option that Spark's catalog adds if the options are those of a table: `CREATE TABLE … USING ottla OPTIONS (…)`."""
CATALOGS_OWN = frozenset(
    {CATALOG, "owner", "external", "is_managed_location", "location", "path", "comment", "collation"}
)
"""Further options that the catalog may add; topics do not use them."""
CATALOGS_COPY = "option."
"""The prefix of a second copy of a table's options."""


@settings
class SourceOptions:
    """Options of `spark.read` and `spark.readStream` with `format("ottla")`."""

    kafka: Mapping[str, Any] = beside(default_factory=dict)
    """Settings of the client, given as `kafka.<name>`; `kafka.bootstrap.servers` is required."""
    registry: Mapping[str, Any] = beside(default_factory=dict)
    """Settings of the registry client, for values that begin with a schema id: `schemaRegistryUrl` and the others by their
    names without dots, such as `schemaRegistryBasicAuthUserInfo`, or as `schema.registry.<name>`.
    """

    subscribe: tuple[str, ...] | None = None
    """Topics, separated by commas. One of `subscribe`, `subscribePattern` and `assign` is required."""
    subscribe_pattern: str | None = None
    """A Java regular expression that matches a topic's whole name; a running query includes new topics."""
    assign: str | None = None
    """Partitions as JSON: `{"topic": [0, 1]}`."""

    starting_offsets: str | None = None
    """`earliest`, `latest` (streams only) or JSON, `{"topic": {"0": 23, "1": -2}}`, where -2 is the earliest and -1 the
    latest offset. A new query starts there (default in a batch: `earliest`, in a stream: `latest`); a query with a
    checkpoint continues from it, and partitions that appear later start at their earliest offset.
    """
    ending_offsets: str | None = None
    """`latest` or JSON; the end is exclusive. Batch only."""
    starting_timestamp: int | None = None
    """Milliseconds since the epoch: each partition starts at its first record with this timestamp or a later one; -2 is
    the earliest offset, and in a stream -1 the latest. Takes precedence over `startingOffsetsByTimestamp`, which takes
    precedence over `startingOffsets`.
    """
    ending_timestamp: int | None = None
    """Milliseconds since the epoch: each partition ends before its first record with this timestamp or a later one; -1
    is the latest offset. Batch only.
    """
    starting_offsets_by_timestamp: str | None = None
    """Like `startingTimestamp`, for each partition: `{"topic": {"0": 1700000000000}}`."""
    ending_offsets_by_timestamp: str | None = None
    """Like `endingTimestamp`, for each partition. Batch only."""
    starting_offsets_by_timestamp_strategy: Literal["error", "latest"] = "error"
    """If no record has the timestamp or a later one: fail, or start at the end."""

    fail_on_data_loss: bool = True
    """Fail if offsets or topics that the query still needs do not exist any more. If false, the query continues with
    the remaining records.
    """
    include_headers: bool = False
    """Add the column `headers`, an array of (key, value)."""

    max_offsets_per_trigger: Positive | None = None
    """The most offsets of a micro-batch, divided among the partitions in proportion to their available offsets."""
    min_offsets_per_trigger: Positive | None = None
    """The offsets that a micro-batch waits for, for at most `maxTriggerDelay`."""
    max_trigger_delay: str = "15m"
    """The longest delay of a micro-batch by `minOffsetsPerTrigger`, for example `30s` or `15m`; a plain number is
    milliseconds.
    """
    idle_wait: str = "0"
    """The time that a check for records waits for some, after three checks found none, for example `10s`. An idle query
    then uses less processor time. Only for queries with one source that do not depend on the time of day.
    """
    min_partitions: Positive | None = None
    """The desired minimum number of Spark tasks: larger ranges are split."""
    max_records_per_partition: Positive | None = None
    """The most offsets of a Spark task: larger ranges are split."""

    key_format: FormatName = "raw"
    """The format of keys, as in `valueFormat`."""
    value_format: FormatName = "raw"
    """The format of values: `raw` bytes, `string` (UTF-8), or a format that tasks decode into columns within the column
    `value`: `json` (`valueSchema`), `avro` (`valueSchema`), `protobuf` (`valueDescriptor` and `valueMessage`). With
    `schemaRegistryUrl` these three are decoded by the schema id in front of each value or in its headers.
    """
    key_schema: str | None = None
    """The schema of keys, as in `valueSchema`."""
    value_schema: str | None = None
    """For JSON: the columns, as DDL (`id bigint, tags array<string>`) or as JSON (`df.schema.json()`), or `infer` to
    infer them from the topic when the query is created. For Avro: the schema as JSON, or the name of a file with it;
    with `schemaRegistryUrl` it is the reader's schema, to which values of all versions are converted.
    """
    key_schema_version: Positive | None = None
    """The version of the keys' subject, as in `valueSchemaVersion`."""
    value_schema_version: Positive | None = None
    """With `schemaRegistryUrl`: the version of the subject that is the reader's schema. The default is the newest version
    when the query is created.
    """
    key_subject: str | None = None
    """The subject of keys, as in `valueSubject`; the default is `TOPIC-key`."""
    value_subject: str | None = None
    """With `schemaRegistryUrl`: the subject of the reader's schema. The default is `TOPIC-value`."""
    key_descriptor: str | None = None
    """The descriptor set of keys, as in `valueDescriptor`."""
    value_descriptor: str | None = None
    """For Protocol Buffers: the file written by `protoc --include_imports -o FILE`; the driver reads it."""
    key_message: str | None = None
    """The message type of keys, as in `valueMessage`."""
    value_message: str | None = None
    """For Protocol Buffers: the full name of the message type, for example `shop.Order`. With `schemaRegistryUrl` the
    default is the first message of the schema.
    """
    key_reader: str | None = None
    """Set by `ottla pipeline run`: the reader's schema of registered keys that are JSON or Protobuf."""
    value_reader: str | None = None
    """Set by `ottla pipeline run`: the reader's schema of registered values that are JSON or Protobuf."""
    mode: Literal["PERMISSIVE", "DROPMALFORMED", "FAILFAST"] = "PERMISSIVE"
    """The handling of a record that cannot be decoded. PERMISSIVE returns the fields that could be read, and adds the
    columns `_error` (the error, or null) and `_raw` (the original value of a record with an error). DROPMALFORMED skips
    the record. FAILFAST stops the query with the record's position.
    """
    keep_raw: bool = False
    """PERMISSIVE returns the original value of every record in `_raw`, not only of those with an error, and the
    original key in `_raw_key`.
    """
    reject_empty: bool = False
    """Reject a key or value that is not null but is decoded as null, such as JSON of no bytes. Without it JSON is read
    as by `from_json`, and such a row looks like a tombstone.
    """
    time_zone: str = "UTC"
    """`timeZone`: the zone of times in JSON without one."""
    infer_records: Positive = 1000
    """The records at the beginning of each partition that `valueSchema = infer` reads."""

    commit_offsets_to_group: str | None = None
    """A consumer group that receives the stream's offsets after each micro-batch, so that tools show its lag. For
    information only: the query itself continues from its checkpoint. The group must have no members.
    """
    poll_timeout_ms: Positive = 120_000
    """`kafkaConsumer.pollTimeoutMs`: the time that a task waits for the next records before it fails."""
    group_id_prefix: str | None = None
    """Accepted without effect: Ottla reads partitions without a group."""
    fetch_offset_retries: AtLeastZero = 3
    """`fetchOffset.numRetries`: accepted without effect: the client retries for `kafka.default.api.timeout.ms`."""
    fetch_offset_retry_interval_ms: AtLeastZero = 10
    """`fetchOffset.retryIntervalMs`: accepted without effect, as the option above."""


@settings
class SinkOptions:
    """Options of `df.write` and `df.writeStream` with `format("ottla")`."""

    kafka: Mapping[str, Any] = beside(default_factory=dict)
    """Settings of the producer, given as `kafka.<name>`; `kafka.bootstrap.servers` is required."""
    topic: str | None = None
    """The topic of all rows; without it each row has its topic in the column `topic`."""
    registry: Mapping[str, Any] = beside(default_factory=dict)
    """Settings of the registry client, as in the source."""
    key_format: Literal["raw", "avro", "json", "protobuf"] = "raw"
    """The format of keys, as in `valueFormat`."""
    value_format: Literal["raw", "avro", "json", "protobuf"] = "raw"
    """`raw`: the column `value` is text or bytes. `avro`, `json`, `protobuf`: it is a struct or another type, and is written
    in this format with the id of its schema in front; needs `schemaRegistryUrl` and `topic`.
    """
    key_schema: str | None = None
    """The schema of keys, as in `valueSchema`."""
    value_schema: str | None = None
    """The schema of values, as text. The default for Avro and JSON is the schema of the column `value`."""
    key_schema_version: str | None = None
    """The version of the keys' subject, as in `valueSchemaVersion`."""
    value_schema_version: str | None = None
    """The version of the subject with which values are written: a number, or `latest`. Nothing is registered then."""
    key_message: str | None = None
    """The message of keys, as in `valueMessage`."""
    value_message: str | None = None
    """For Protocol Buffers: the full name of the message type; the default is the first message of the schema."""
    key_subject: str | None = None
    """The subject of the schema of keys; the default is `TOPIC-key`."""
    value_subject: str | None = None
    """The subject of the schema; the default is `TOPIC-value`."""
    auto_register_schemas: bool = True
    """Register the schema when the write starts, if the subject does not have it. If false, it must be registered."""
    include_headers: bool = True
    """Write the column `headers` if it exists."""
    include_timestamp: bool = False
    """Write the column `timestamp` as the record's timestamp. By default a record has the time when it is written, as
    in the official connector: a column of this name often has another meaning, and retention deletes old records.
    """

    delivery_guarantee: Literal["at_least_once", "exactly_once"] = "at_least_once"
    """`at_least_once`: a task or batch that Spark runs again is written again. `exactly_once`: each row of a stream is
    committed once, and a batch write is committed as a whole; readers need `isolation.level=read_committed`.
    """
    dead_letter_topic: str | None = None
    """The topic for rows that cannot be written, with headers for the cause; without it such a row fails the batch."""
    dead_letter_count_file: str | None = None
    """Set by `ottla pipeline run`: the file to which the driver writes the number of dead letters."""
    transactional_id_prefix: str = "ottla-spark"
    """The prefix of the transactional ids and groups of an exactly-once query."""
    marker_topic: str | None = None
    """The topic of the marks of exactly-once batches. The marks are offsets of groups for its partition 0; no records
    are written to it. The default is the option `topic`, and `__consumer_offsets` if each row has its topic.
    """
    query_id: str | None = None
    """Set by `ottla.spark.write_stream`: the query of a batch write."""
    batch_id: AtLeastZero | None = None
    """Set by `ottla.spark.write_stream`, with `queryId`: the number of the micro-batch."""


SPELLED = {
    "poll_timeout_ms": "kafkaConsumer.pollTimeoutMs",
    "fetch_offset_retries": "fetchOffset.numRetries",
    "fetch_offset_retry_interval_ms": "fetchOffset.retryIntervalMs",
}
"""Options with names other than their fields' in camel case."""

REGISTRY = ("schema.registry.", "schemaregistry")
"""The prefixes of registry settings, in lower case."""
REGISTRY_URL = "schemaRegistryUrl"
LATEST = "latest"
"""The newest version of a subject."""
REGISTRY_SETTINGS = frozenset(
    {
        "url",
        "proxy",
        "timeout",
        "max.retries",
        "retries.wait.ms",
        "retries.max.wait.ms",
        "cache.capacity",
        "basic.auth.user.info",
        "basic.auth.credentials.source",
        "ssl.ca.location",
        "ssl.certificate.location",
        "ssl.key.location",
        "ssl.key.password",
        "bearer.auth.credentials.source",
        "bearer.auth.token",
        "bearer.auth.logical.cluster",
        "bearer.auth.identity.pool.id",
        "bearer.auth.client.id",
        "bearer.auth.client.secret",
        "bearer.auth.scope",
        "bearer.auth.issuer.endpoint.url",
    }
)
"""The settings of the registry client that are text, so that Spark can pass them to tasks."""

REFUSED = {
    "auto.offset.reset": "use the option startingOffsets",
    "key.deserializer": "keys are read as bytes; decode them with DataFrame operations",
    "value.deserializer": "values are read as bytes; decode them with DataFrame operations",
    "key.serializer": "keys are written unchanged; convert them to text or binary with DataFrame operations",
    "value.serializer": "values are written unchanged; convert them to text or binary with DataFrame operations",
    "enable.auto.commit": "Spark keeps the offsets in its checkpoint",
    "on.statistics": "a function cannot be passed to Spark's processes; use the progress of Spark's queries",
    "statistics.interval.ms": "a function cannot be passed to Spark's processes; use the progress of Spark's queries",
    "interceptor.classes": "an interceptor could change records, and Spark must read the same records again after a failure",
}
"""Client settings that conflict with Spark's guarantees, and the alternative."""


def read_source_options(given: Mapping[str, str]) -> SourceOptions:
    """Return the source's options; ConfigError if one is unknown, invalid or in conflict with another."""
    options = read_options(SourceOptions, given, SinkOptions)
    check_subscription(options)
    options = changed(options, registry=registry_settings(given))
    check_registry(options)
    return options


def read_sink_options(given: Mapping[str, str]) -> SinkOptions:
    """Return the sink's options; ConfigError as above."""
    options = changed(read_options(SinkOptions, given, SourceOptions), registry=registry_settings(given))
    is_table = any(name.lower() == CATALOG for name in given)
    check_sink_registry(options, is_table)
    return options


def read_options(
    cls: type[O], given: Mapping[str, str], others: type[SourceOptions] | type[SinkOptions] | None = None
) -> O:
    """Return an instance of `cls`; the settings of the client are checked by the client.

    A table is read and written with the same options, so options of `others` are accepted for a table.
    """
    table = spelled_options(cls)
    left = set(SPARKS_OWN)
    if any(name.lower() == CATALOG for name in given):
        left |= CATALOGS_OWN | (spelled_options(others).keys() if others else set()) - table.keys()
    values: dict[str, Any] = {}
    for name, text in given.items():
        if name.lower().startswith(PREFIX) or name.lower() in left or name.lower().startswith(REGISTRY):
            continue
        if name.lower().startswith(CATALOGS_COPY) and name[len(CATALOGS_COPY) :] in given:
            continue
        option = table.get(name.lower())
        if option is None:
            raise ConfigError(unknown_option(name, [spelling(known.field) for known in table.values()]))
        values[option.field] = convert(spelling(option.field), text.strip(), option.type)
    return changed(cls(**values), kafka=client_settings(given))


def spelled_options(cls: type[Any]) -> dict[str, Option]:
    """Return the options of a class by name in lower case."""
    return {spelling(option.field).lower(): option for option in options_of(cls)}


def unknown_option(name: str, known: Iterable[str]) -> str:
    """Return the text for an unknown option; the comparison ignores case, because Spark lowers names."""
    by_letters = {option.lower(): option for option in [*known, PREFIX + SERVERS]}
    close = difflib.get_close_matches(name.lower(), by_letters, n=1, cutoff=0.6)
    return f"unknown option {name!r}" + (f"; did you mean {by_letters[close[0]]!r}?" if close else "")


def client_settings(given: Mapping[str, str]) -> dict[str, Any]:
    """Return the `kafka.` options without their prefix, with secrets as `Password`, which is not printed."""
    texts = {dotted(name): text for name, text in given.items() if name.lower().startswith(PREFIX)}
    settings: dict[str, Any] = {
        name: Password(text) if name in SECRETS else text for name, text in translate_names(texts).items()
    }
    for name, remedy in REFUSED.items():
        if name in settings:
            raise ConfigError(f"option kafka.{name} is not allowed: {remedy}")
    if not {name.lower() for name in given} - SPARKS_OWN - CATALOGS_OWN:
        raise ConfigError(
            "there are no options: Spark passes no options of a table (CREATE TABLE … USING ottla) to a source in Python; "
            "load with spark.read.format, and give it a name with createOrReplaceTempView"
        )
    if not settings.get(SERVERS, "").strip():
        raise ConfigError("option kafka.bootstrap.servers is required, for example localhost:9092")
    return settings


def registry_settings(given: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings of the registry client. They are not printed, because most of them may have a secret."""
    by_letters = {REGISTRY[1] + name.replace(".", ""): name for name in REGISTRY_SETTINGS}
    settings: dict[str, Any] = {}
    for option, text in given.items():
        if not option.lower().startswith(REGISTRY):
            continue
        name = by_letters.get(option.lower().replace(".", ""))
        if name is None:
            raise ConfigError(unknown_option(option, map(registry_spelling, REGISTRY_SETTINGS)))
        settings[name] = Password(text.strip())
    if settings and "url" not in settings:
        raise ConfigError(
            f"option {registry_spelling(min(settings))} needs {REGISTRY_URL}, for example http://localhost:8081"
        )
    return settings


def registry_spelling(name: str) -> str:
    """Return the option of a setting of the registry client: `basic.auth.user.info` is `schemaRegistryBasicAuthUserInfo`."""
    return "schemaRegistry" + "".join(word.capitalize() for word in name.split("."))


def check_sink_registry(options: SinkOptions, is_table: bool) -> None:
    """Raise ConfigError for options of registered values that need others. A table has those of the source, too."""
    encoded = [name for name in ("key", "value") if getattr(options, f"{name}_format") != "raw"]
    for name in encoded:
        form = getattr(options, f"{name}_format")
        if not options.registry:
            raise ConfigError(f"option {name}Format = {form} needs {REGISTRY_URL}, for example http://localhost:8081")
        if options.topic is None:
            raise ConfigError(f"option {name}Format = {form} needs the option topic: all rows have one schema")
        check_sink_version(options, name)
    for name in ("key", "value"):
        check_sink_message(options, name, is_table)
    if is_table:
        return
    if options.registry and not encoded:
        raise ConfigError(f"option {REGISTRY_URL} needs valueFormat = avro, json or protobuf")
    for name in ("key", "value"):
        for field in (f"{name}_schema", f"{name}_schema_version", f"{name}_subject"):
            if name not in encoded and getattr(options, field) is not None:
                raise ConfigError(f"option {spelling(field)} needs {name}Format = avro, json or protobuf")


def check_sink_message(options: SinkOptions, name: str, is_table: bool) -> None:
    """Raise ConfigError for Protobuf without a schema, and for a message of another format. A table may have the latter."""
    is_protobuf = getattr(options, f"{name}_format") == "protobuf"
    if is_protobuf and getattr(options, f"{name}_schema") is getattr(options, f"{name}_schema_version") is None:
        raise ConfigError(
            f"option {name}Format = protobuf needs {name}Schema, the text of a .proto file, or {name}SchemaVersion"
        )
    if getattr(options, f"{name}_message") is not None and not is_protobuf and not is_table:
        raise ConfigError(f"option {name}Message needs {name}Format = protobuf")


def check_sink_version(options: SinkOptions, name: str) -> None:
    """Raise ConfigError for a version that is not one, or that is given together with a schema."""
    version: str | None = getattr(options, f"{name}_schema_version")
    if version is None:
        return
    if version != LATEST and not (version.isascii() and version.isdigit() and int(version)):
        raise ConfigError(f"option {name}SchemaVersion = {version!r}: must be a number, or {LATEST}")
    if getattr(options, f"{name}_schema") is not None:
        raise ConfigError(f"options {name}SchemaVersion and {name}Schema exclude each other: give only one of them")


REGISTERED_UNLESS: Mapping[str, str | None] = {"avro": None, "json": "schema", "protobuf": "descriptor"}
"""The formats that may be registered, and the option that describes values without schema ids instead."""


def is_registered(options: SourceOptions, name: str) -> bool:
    """Return True if the key or the value is decoded by its schema id."""
    form = getattr(options, f"{name}_format")
    if not options.registry or form not in REGISTERED_UNLESS:
        return False
    other = REGISTERED_UNLESS[form]
    return other is None or getattr(options, f"{name}_{other}") is None


def check_registry(options: SourceOptions) -> None:
    """Raise ConfigError for options that need others, or exclude them."""
    if options.registry and not any(is_registered(options, name) for name in ("key", "value")):
        raise ConfigError(
            f"option {REGISTRY_URL} is only used for the formats avro, json without valueSchema, and protobuf without "
            f"valueDescriptor, and valueFormat is {options.value_format}; set valueFormat = avro, or leave it out"
        )
    for name in ("key", "value"):
        for field in ("schema_version", "subject"):
            if getattr(options, f"{name}_{field}") is None:
                continue
            option = spelling(f"{name}_{field}")
            if not is_registered(options, name):
                raise ConfigError(f"option {option} needs {REGISTRY_URL} and {name}Format = avro, json or protobuf")
            if getattr(options, f"{name}_schema") is not None:
                raise ConfigError(f"options {option} and {name}Schema exclude each other: give only one of them")


def dotted(name: str) -> str:
    """Return the client's setting of an option in Kafka's notation, so that settings with underscores are checked too."""
    return name[len(PREFIX) :].lower().replace("_", ".")


def spelling(field_name: str) -> str:
    """Return the option's name in the official connector: `starting_offsets` is `startingOffsets`."""
    first, *rest = field_name.split("_")
    return SPELLED.get(field_name) or first + "".join(word.capitalize() for word in rest)


def check_subscription(options: SourceOptions) -> None:
    """Raise ConfigError unless exactly one of the three subscription options is given and not empty."""
    ways = {"subscribe": options.subscribe, "subscribePattern": options.subscribe_pattern, "assign": options.assign}
    chosen = [name for name, value in ways.items() if value is not None]
    if not chosen:
        raise ConfigError(f"one of the options {', '.join(ways)} is required")
    if len(chosen) > 1:
        raise ConfigError(f"options {' and '.join(chosen)} exclude each other: give only one of them")
    if not ways[chosen[0]]:
        raise ConfigError(f"option {chosen[0]} is empty; give a topic")
