"""`type: topic`: the records of topics, read with Spark's source `ottla`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from ottla.errors import ConfigError
from ottla.pipelines.kafka_names import check_topics, checked_servers
from ottla.pipelines.model import Scalar, with_options
from ottla.pipelines.pipeline_context import PipelineContext
from ottla.pipelines.rows import FAILED, HEADER, HEADERS, KEY, METADATA_COLUMNS, RECORD, TOMBSTONE, failed_row
from ottla.pipelines.schema_files import find_mistakes
from ottla.pipelines.sources.source import Source
from ottla.pipelines.sources.written_schema import checked
from ottla.settings_class import changed
from ottla.spark.columns.row_decoder import ERROR, RAW, RAW_KEY
from ottla.spark.columns.value_formats import NEEDED, is_avro
from ottla.spark.options import (
    REGISTERED_UNLESS,
    REGISTRY_URL,
    SourceOptions,
    check_registry,
    read_source_options,
    spelling,
)
from ottla.spark.sink.dead_letters import PREFIX

OURS = {"kafka", "subscribe", "subscribe_pattern", "assign", "mode", "ending_offsets", "ending_timestamp", "keep_raw"}
OURS |= {
    "key_reader",
    "value_reader",
    "reject_empty",
    "ending_offsets_by_timestamp",
    "group_id_prefix",
    "fetch_offset_retries",
    "fetch_offset_retry_interval_ms",
}
"""Options that this source sets itself, that are for batch queries, or that have no effect."""

CONVERTER = "VALUE_CONVERTER"
"""The stage of Kafka Connect in which a record is decoded."""
IDLE_WAIT = "60s"
FILES = {"valueDescriptor", "keyDescriptor"}
"""Options with a file name."""
REGISTERED = [
    f"{part}_{what}" for part in ("key", "value") for what in ("format", "schema", "schema_version", "subject")
]
"""The fields for registered keys and values."""
INLINE = "{"
"""The start of a schema that is not the name of a file."""


class TopicBase(Source):
    """The records of one or several topics."""

    type: Literal["topic"]
    topic: str | list[str] | None = None
    """The topic, or a list of them. Either this or `topicPattern` is required."""
    topic_pattern: str | None = None
    """A regular expression that matches a topic's whole name; new topics are included."""
    starting_offsets: str = "earliest"
    """The start of a pipeline without a checkpoint: `earliest`, `latest`, or JSON as in Spark."""
    bootstrap_servers: str | None = Field(default=None, alias="bootstrap.servers")
    """Brokers other than those of `settings`."""
    kafka: dict[str, Scalar] = {}
    """More settings of the client, by Kafka's names."""

    _servers = field_validator("bootstrap_servers")(checked_servers)

    @field_validator("topic")
    @classmethod
    def are_topics(cls, topic: str | list[str] | None) -> str | list[str] | None:
        named = [topic] if isinstance(topic, str) else topic or []
        check_topics(name for name in named if name.strip())  # `one_way` reports empty names
        return topic

    @field_validator("key_schema", "value_schema", check_fields=False)
    @classmethod
    def is_schema(cls, text: str | None, about: ValidationInfo) -> str | None:
        """Check a JSON schema, which is written as columns; those of other formats are read when the query starts."""
        form = about.data.get(str(about.field_name).replace("schema", "format"))
        return checked(text) if text and form == "json" else text

    @model_validator(mode="after")
    def one_way(self) -> TopicBase:
        if (self.topic is None) == (self.topic_pattern is None):
            raise ValueError("give either topic or topicPattern")
        if not self.names() and self.topic_pattern is None:
            raise ValueError("topic is empty; give a topic")
        return self

    def check_registry(self, has_registry: bool) -> None:
        """Raise ConfigError for keys that need a schema registry, or that exclude each other. This reads no file."""
        given = {name: getattr(self, name) for name in REGISTERED if getattr(self, name, None) is not None}
        registered = self.registered_parts() if has_registry else []
        for part in ("key", "value"):
            if part not in registered:
                self.check_whole_format(part)
        check_registry(changed(SourceOptions(), registry={"url": ""} if registered else {}, **given))

    def check_whole_format(self, part: str) -> None:
        """Raise ConfigError if the format of values without schema ids has not all that it needs."""
        form = str(getattr(self, f"{part}_format", None))
        for field, what in NEEDED.get(form, {}).items():
            if not getattr(self, f"{part}_{field}"):
                other = f", or a schema registry: {REGISTRY_URL} under settings" if field != "message" else ""
                raise ConfigError(f"{part}Format {form} needs {spelling(f'{part}_{field}')}, {what}{other}")

    def registered_parts(self) -> list[str]:
        """Return the parts of a record that have schema ids if the file has a registry: `key`, `value`."""
        found: list[str] = []
        for part in ("key", "value"):
            form = getattr(self, f"{part}_format", None)
            other = REGISTERED_UNLESS.get(form or "")
            if form in REGISTERED_UNLESS and (other is None or not getattr(self, f"{part}_{other}")):
                found.append(part)
        return found

    def needs_brokers_for_schemas(self) -> bool:
        """Return True if a schema is that of topics which are only known to the brokers."""
        fields = ("schema", "subject")
        named = (any(getattr(self, f"{part}_{field}", None) for field in fields) for part in self.registered_parts())
        return self.topic is None and not all(named)

    def names(self) -> list[str]:
        """Return the configured topics."""
        topics = [self.topic] if isinstance(self.topic, str) else self.topic or []
        return [name for name in topics if name.strip()]

    def describe(self) -> str:
        return f"topic {', '.join(self.names())}" if self.topic is not None else f"topics like {self.topic_pattern}"

    def find_misplaced(self, context: PipelineContext) -> Iterator[tuple[str, str]]:
        return find_mistakes(self.given(), context)

    def read(self, spark: SparkSession, context: PipelineContext, tolerant: bool) -> DataFrame:
        return as_rows(self.load(spark, context, mode="DROPMALFORMED" if tolerant else "FAILFAST"))

    def read_bad(self, spark: SparkSession, context: PipelineContext) -> DataFrame | None:
        frame = self.load(spark, context, mode="PERMISSIVE", includeHeaders="true", keepRaw="true")
        known = [failed_row(CONVERTER, F.col(ERROR)).alias(FAILED)] if ERROR in frame.columns else []
        return as_rows(frame, record_of(frame).alias(RECORD), *known)

    def find_schemas(self, context: PipelineContext) -> Mapping[str, str]:
        if not (context.registry and self.registered_parts()):
            return {}
        from ottla.spark.source.registered_readers import find_readers

        found = find_readers(read_source_options(self.reading_options(context)), context.pending)
        return {f"{part}Schema": text for part, text in found.items()}

    def load(self, spark: SparkSession, context: PipelineContext, **more: str) -> DataFrame:
        """Return the stream as read by Spark's source."""
        return spark.readStream.format("ottla").options(**self.reading_options(context) | more).load()

    def reading_options(self, context: PipelineContext) -> dict[str, str]:
        """Return the options of Spark's source."""
        way = (
            {"subscribe": ",".join(self.names())}
            if self.topic is not None
            else {"subscribePattern": self.topic_pattern}
        )
        fixed = {"rejectEmpty": "true"} | ({"idleWait": IDLE_WAIT} if context.may_wait else {})
        options = context.options(
            {**fixed, **self.given(), "startingOffsets": context.start or self.starting_offsets, **way}
        )
        for name in self.files(options):
            options[name] = context.path(options[name])
        if self.registered_parts():
            options |= context.registry
        for name, schema in context.schemas.items():  # the schemas of the query are requested once
            part = name.removesuffix("Schema")
            if getattr(self, f"{part}_format") != "avro":
                options[f"{part}Reader"] = schema
                continue
            options = {each: text for each, text in options.items() if each not in (f"{name}Version", f"{part}Subject")}
            options[name] = schema
        return options | context.client_options("consumer", self.bootstrap_servers, self.kafka)

    def files(self, options: Mapping[str, str]) -> list[str]:
        """Return the options that name a file; an Avro schema may be given directly instead."""
        avro = [part for part in ("key", "value") if getattr(self, f"{part}_format", None) == "avro"]
        schemas = [f"{part}Schema" for part in avro if not is_avro(options.get(f"{part}Schema", INLINE))]
        return [*(FILES & options.keys()), *schemas]

    def given(self) -> dict[str, Any]:
        """Return the options of Spark's source that the file sets."""
        fields = type(self).model_fields
        chosen = {name: getattr(self, name) for name in fields if name not in TopicBase.model_fields}
        return {fields[name].alias or name: value for name, value in chosen.items() if value is not None}


def as_rows(frame: DataFrame, *more: Column) -> DataFrame:
    """Return the fields of the value as columns, followed by the metadata columns."""
    kind = frame.schema["value"].dataType
    names = kind.names if isinstance(kind, StructType) else []
    taken = [name for name in names if name in METADATA_COLUMNS]
    if taken:
        raise ConfigError(f"the value has a field {taken[0]!r}, which is the name of a metadata column here; rename it")
    value = F.col("value")
    return frame.select(
        *([value[name].alias(name) for name in names] or [value]),
        F.col("key").alias(KEY),
        *(F.col(name).alias(f"_{name}") for name in ("topic", "partition", "offset", "timestamp")),
        *([F.col("headers").alias(HEADERS)] if "headers" in frame.columns else []),
        value.isNull().alias(TOMBSTONE),  # `rejectEmpty`: no other row has a value that is null
        *more,
    )


def record_of(frame: DataFrame) -> Column:
    """Return the original record as one column."""
    key = F.col(RAW_KEY) if RAW_KEY in frame.columns else F.col("key")
    value = F.col(RAW) if RAW in frame.columns else F.col("value")
    there = (F.col(name) for name in ("topic", "partition", "offset", "headers"))
    return F.struct(key.cast("binary").alias("key"), value.cast("binary").alias("value"), *there)


def as_dead_letters(rows: DataFrame, pipeline: str) -> DataFrame:
    """Return the records of failed rows, with Kafka Connect's headers for the cause (KIP-298)."""
    bad, record, what = rows.where(F.col(FAILED).isNotNull()), F.col(RECORD), F.col(FAILED)
    causes = {
        "topic": record["topic"],
        "partition": record["partition"].cast("string"),
        "offset": record["offset"].cast("string"),
        "connector.name": F.lit(pipeline),
        "stage": what["stage"],
        "exception.message": what["reason"],
    }
    new = [
        F.struct(F.lit(PREFIX + name).alias("key"), text.cast("binary").alias("value")) for name, text in causes.items()
    ]
    return bad.select(
        record["key"].alias("key"),
        record["value"].alias("value"),
        F.concat(F.coalesce(record["headers"], F.array().cast(HEADER)), F.array(*new).cast(HEADER)).alias("headers"),
    )


TopicSource: type[Any] = with_options(TopicBase, SourceOptions, OURS, "TopicSource")
