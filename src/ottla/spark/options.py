"""Options of Spark's source and sink, under the official connector's names, in any case of letters.

The two classes are the tables that name, type and document them. Nothing here talks to Kafka or
Spark, and whatever is wrong with an option is one sentence in a ConfigError.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, TypeVar

from ottla.client.config.common_config import CommonConfig
from ottla.client.config.synonyms import understood
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
"""Options that Spark itself puts beside the user's."""
CATALOG = "provider"
"""What Spark's catalog puts there where the options are those of a table: `CREATE TABLE … USING ottla OPTIONS (…)`."""
CATALOGS_OWN = frozenset(
    {CATALOG, "owner", "external", "is_managed_location", "location", "path", "comment", "collation"}
)
"""What else it may put there; a topic has none of it."""
CATALOGS_COPY = "option."
"""Before the names of options of a table that it gives a second time."""


@settings
class SourceOptions:
    """What `spark.read` and `spark.readStream` take with `format("ottla")`."""

    kafka: Mapping[str, Any] = beside(default_factory=dict)
    """Settings of the client, given as `kafka.<name>`; `kafka.bootstrap.servers` is required."""

    subscribe: tuple[str, ...] | None = None
    """Topics, separated by commas. One of `subscribe`, `subscribePattern` and `assign` is required."""
    subscribe_pattern: str | None = None
    """A regular expression of Java's that a topic's whole name must match; new topics join a running query."""
    assign: str | None = None
    """Partitions as JSON: `{"topic": [0, 1]}`."""

    starting_offsets: str | None = None
    """`earliest`, `latest` (streams only) or JSON, `{"topic": {"0": 23, "1": -2}}`, -2 being the earliest and -1 the
    latest. A new query starts there (batch: `earliest`, stream: `latest` by default); one with a checkpoint goes on
    where it was, and partitions that appear later start at their earliest."""
    ending_offsets: str | None = None
    """`latest` or JSON; the end is not read. Batch only."""
    starting_timestamp: int | None = None
    """Milliseconds since the epoch: each partition starts at its first record of that time or later; -2 is the earliest, and
    in a stream -1 the latest. Wins over `startingOffsetsByTimestamp`, which wins over `startingOffsets`."""
    ending_timestamp: int | None = None
    """Milliseconds since the epoch: each partition ends before its first record of that time or later; -1 is the latest.
    Batch only."""
    starting_offsets_by_timestamp: str | None = None
    """As `startingTimestamp` for each partition: `{"topic": {"0": 1700000000000}}`."""
    ending_offsets_by_timestamp: str | None = None
    """As `endingTimestamp` for each partition. Batch only."""
    starting_offsets_by_timestamp_strategy: Literal["error", "latest"] = "error"
    """What to do where no record is as late as the timestamp: fail, or start at the end."""

    fail_on_data_loss: bool = True
    """Whether to fail when offsets a query still needs, or whole topics, are gone; else it goes on with what is left."""
    include_headers: bool = False
    """Whether to add the column `headers`, an array of (key, value)."""

    max_offsets_per_trigger: Positive | None = None
    """The most offsets of one micro-batch, shared out over the partitions by how much each has to offer."""
    min_offsets_per_trigger: Positive | None = None
    """How many offsets a micro-batch waits for, but not longer than `maxTriggerDelay`."""
    max_trigger_delay: str = "15m"
    """How long `minOffsetsPerTrigger` may hold a micro-batch back, such as `30s` or `15m`; a bare number is milliseconds."""
    idle_wait: str = "0"
    """How long a look that finds no records, after three that found none, waits for some, such as `10s`: a query that has nothing
    to do costs less then. For queries with one source, and none that reckon with the time of day."""
    min_partitions: Positive | None = None
    """The least number of Spark tasks wished for: larger ranges are split."""
    max_records_per_partition: Positive | None = None
    """The most offsets of one Spark task: larger ranges are split."""

    key_format: FormatName = "raw"
    """What keys are, as `valueFormat`."""
    value_format: FormatName = "raw"
    """What values are: `raw` bytes, `string` (UTF-8), or what the tasks decode into columns within the column `value`:
    `json` (`valueSchema`), `avro` (`valueSchema`), `protobuf` (`valueDescriptor` and `valueMessage`)."""
    key_schema: str | None = None
    """The schema of keys, as `valueSchema`."""
    value_schema: str | None = None
    """Of JSON: the columns, as DDL (`id bigint, tags array<string>`) or as JSON (`df.schema.json()`), or `infer`, to
    find them in the topic when the query is made. Of Avro: the schema as JSON, or the name of a file of it."""
    key_descriptor: str | None = None
    """The descriptor set of keys, as `valueDescriptor`."""
    value_descriptor: str | None = None
    """Of Protocol Buffers: the file that `protoc --include_imports -o FILE` writes; the driver reads it."""
    key_message: str | None = None
    """The message that keys are, as `valueMessage`."""
    value_message: str | None = None
    """Of Protocol Buffers: the full name of the message, such as `shop.Order`."""
    mode: Literal["PERMISSIVE", "DROPMALFORMED", "FAILFAST"] = "PERMISSIVE"
    """What becomes of a record that cannot be decoded: PERMISSIVE gives what could be read of it, and adds the columns
    `_error`, what is wrong, null where nothing is, and `_raw`, the value as it came where something is wrong;
    DROPMALFORMED leaves it out; FAILFAST stops the query with its place."""
    keep_raw: bool = False
    """Whether PERMISSIVE gives the value as it came of every record in `_raw`, and not only where something is wrong, and the
    key as it came in `_raw_key`."""
    reject_empty: bool = False
    """Whether a key or value that is not null but is decoded as null, such as JSON of no bytes, is a record that cannot be
    decoded. Without it JSON is read as `from_json` reads it, and such a row looks like a tombstone."""
    time_zone: str = "UTC"
    """`timeZone`: the zone of times in JSON that name none."""
    infer_records: Positive = 1000
    """How many records at the beginning of each partition `valueSchema = infer` looks at."""

    commit_offsets_to_group: str | None = None
    """A consumer group that is told how far a stream is, so that tools show its lag; after each micro-batch, for
    information only: the query itself goes on by its checkpoint. The group must have no members."""
    poll_timeout_ms: Positive = 120_000
    """`kafkaConsumer.pollTimeoutMs`: how long a task waits for the next records before it fails."""
    group_id_prefix: str | None = None
    """Accepted; Ottla reads by partition and needs no group."""
    fetch_offset_retries: AtLeastZero = 3
    """`fetchOffset.numRetries`: accepted; the client retries for as long as `kafka.default.api.timeout.ms` says."""
    fetch_offset_retry_interval_ms: AtLeastZero = 10
    """`fetchOffset.retryIntervalMs`: accepted, as the one above."""


@settings
class SinkOptions:
    """What `df.write` and `df.writeStream` take with `format("ottla")`."""

    kafka: Mapping[str, Any] = beside(default_factory=dict)
    """Settings of the producer, given as `kafka.<name>`; `kafka.bootstrap.servers` is required."""
    topic: str | None = None
    """Where every row goes; without it each row says so in its column `topic`."""
    include_headers: bool = True
    """Whether a column `headers` is written where there is one."""
    include_timestamp: bool = False
    """Whether a column `timestamp` becomes the record's time. Without it a record has the time of its writing, as with
    the official connector: a column of that name in a frame is often something else, and retention deletes old records."""

    delivery_guarantee: Literal["at_least_once", "exactly_once"] = "at_least_once"
    """`at_least_once`: a task or batch that Spark runs again writes again. `exactly_once`: each row of a stream is
    committed once, and a batch write counts as a whole; readers need `isolation.level=read_committed`."""
    dead_letter_topic: str | None = None
    """Where rows go that cannot be written, with headers that say why; without it such a row fails the batch."""
    transactional_id_prefix: str = "ottla-spark"
    """How the names begin under which an exactly-once query is known to the brokers: transactional ids and groups."""
    marker_topic: str | None = None
    """The topic with whose partition 0 the marks of exactly-once batches are kept, as offsets of groups; nothing is
    written to it. The option `topic` by default, and `__consumer_offsets` where each row names its topic."""
    query_id: str | None = None
    """Set by `ottla.spark.write_stream`: the query that a batch write belongs to."""
    batch_id: AtLeastZero | None = None
    """Set by `ottla.spark.write_stream`, with `queryId`: the micro-batch."""


SPELLED = {
    "poll_timeout_ms": "kafkaConsumer.pollTimeoutMs",
    "fetch_offset_retries": "fetchOffset.numRetries",
    "fetch_offset_retry_interval_ms": "fetchOffset.retryIntervalMs",
}
"""Options whose name is not their field's in camel case."""

REFUSED = {
    "auto.offset.reset": "use the option startingOffsets",
    "key.deserializer": "keys come as bytes; decode them with DataFrame operations",
    "value.deserializer": "values come as bytes; decode them with DataFrame operations",
    "key.serializer": "keys are written as they are; make them text or binary with DataFrame operations",
    "value.serializer": "values are written as they are; make them text or binary with DataFrame operations",
    "enable.auto.commit": "Spark keeps the offsets in its checkpoint",
    "on.statistics": "a function has no way into Spark's processes; Spark's own progress tells of its queries",
    "statistics.interval.ms": "a function has no way into Spark's processes; Spark's own progress tells of its queries",
    "interceptor.classes": "an interceptor could change what Spark must find unchanged on a second reading",
}
"""Client settings that Spark's promises rule out, and what to do instead."""


def read_source_options(given: Mapping[str, str]) -> SourceOptions:
    """The source's options; ConfigError says what is unknown, malformed or in conflict."""
    options = read_options(SourceOptions, given, SinkOptions)
    check_subscription(options)
    return options


def read_sink_options(given: Mapping[str, str]) -> SinkOptions:
    """The sink's options; ConfigError as above."""
    return read_options(SinkOptions, given, SourceOptions)


def read_options(
    cls: type[O], given: Mapping[str, str], others: type[SourceOptions] | type[SinkOptions] | None = None
) -> O:
    """An instance of `cls`; the settings of the client are kept as they are for the client to judge.

    A table is read and written with the same options, so that those of `others` may be among them.
    """
    table = spelled_options(cls)
    left = set(SPARKS_OWN)
    if any(name.lower() == CATALOG for name in given):
        left |= CATALOGS_OWN | (spelled_options(others).keys() if others else set()) - table.keys()
    values: dict[str, Any] = {}
    for name, text in given.items():
        if name.lower().startswith(PREFIX) or name.lower() in left:
            continue
        if name.lower().startswith(CATALOGS_COPY) and name[len(CATALOGS_COPY) :] in given:
            continue
        option = table.get(name.lower())
        if option is None:
            raise ConfigError(unknown_option(name, [spelling(known.field) for known in table.values()]))
        values[option.field] = convert(spelling(option.field), text.strip(), option.type)
    return changed(cls(**values), kafka=client_settings(given))


def spelled_options(cls: type[Any]) -> dict[str, Option]:
    """The options of a class by their names in small letters."""
    return {spelling(option.field).lower(): option for option in options_of(cls)}


def unknown_option(name: str, known: Iterable[str]) -> str:
    """The sentence about an option nobody knows; letters are compared without their case, as Spark lowers them."""
    by_letters = {option.lower(): option for option in [*known, PREFIX + SERVERS]}
    close = difflib.get_close_matches(name.lower(), by_letters, n=1, cutoff=0.6)
    return f"unknown option {name!r}" + (f"; did you mean {by_letters[close[0]]!r}?" if close else "")


def client_settings(given: Mapping[str, str]) -> dict[str, Any]:
    """The `kafka.` options without their prefix and under our names; what is secret is of a type that is not shown."""
    texts = {dotted(name): text for name, text in given.items() if name.lower().startswith(PREFIX)}
    settings: dict[str, Any] = {
        name: Password(text) if name in SECRETS else text for name, text in understood(texts).items()
    }
    for name, remedy in REFUSED.items():
        if name in settings:
            raise ConfigError(f"option kafka.{name} is not allowed: {remedy}")
    if not {name.lower() for name in given} - SPARKS_OWN - CATALOGS_OWN:
        raise ConfigError(
            "there are no options: Spark hands a source in Python none of those of a table (CREATE TABLE … USING ottla); "
            "load with spark.read.format, and give it a name with createOrReplaceTempView"
        )
    if not settings.get(SERVERS, "").strip():
        raise ConfigError("option kafka.bootstrap.servers is required, such as localhost:9092")
    return settings


def dotted(name: str) -> str:
    """The client's setting that an option names, as Kafka writes it: what is not allowed is not with underscores either."""
    return name[len(PREFIX) :].lower().replace("_", ".")


def spelling(field_name: str) -> str:
    """The option's name as the official connector writes it: `starting_offsets` is `startingOffsets`."""
    first, *rest = field_name.split("_")
    return SPELLED.get(field_name) or first + "".join(word.capitalize() for word in rest)


def check_subscription(options: SourceOptions) -> None:
    """Exactly one of the three ways to say what to read, and not an empty one."""
    ways = {"subscribe": options.subscribe, "subscribePattern": options.subscribe_pattern, "assign": options.assign}
    chosen = [name for name, value in ways.items() if value is not None]
    if not chosen:
        raise ConfigError(f"one of the options {', '.join(ways)} must say what to read")
    if len(chosen) > 1:
        raise ConfigError(f"options {' and '.join(chosen)} exclude each other; give one")
    if not ways[chosen[0]]:
        raise ConfigError(f"option {chosen[0]} is empty; name a topic")
