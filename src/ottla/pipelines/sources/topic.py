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
from ottla.pipelines.sources.schema_files import find_mistakes
from ottla.pipelines.sources.source import Source
from ottla.pipelines.sources.written_schema import checked
from ottla.spark.columns.row_decoder import ERROR, RAW, RAW_KEY
from ottla.spark.columns.value_formats import NEEDED, is_avro
from ottla.spark.options import SourceOptions, spelling
from ottla.spark.sink.dead_letters import PREFIX

OURS = {"kafka", "subscribe", "subscribe_pattern", "assign", "mode", "ending_offsets", "ending_timestamp", "keep_raw"}
OURS |= {
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

    @model_validator(mode="after")
    def format_is_whole(self) -> TopicBase:
        for part in ("key", "value"):
            form = str(getattr(self, f"{part}_format", None))
            for field, what in NEEDED.get(form, {}).items():
                if not getattr(self, f"{part}_{field}"):
                    raise ValueError(f"{part}Format {form} needs {spelling(f'{part}_{field}')}, {what}")
        return self

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

    def load(self, spark: SparkSession, context: PipelineContext, **more: str) -> DataFrame:
        """Return the stream as read by Spark's source."""
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
        options |= context.client_options("consumer", self.bootstrap_servers, self.kafka)
        return spark.readStream.format("ottla").options(**options | more).load()

    def files(self, options: Mapping[str, str]) -> list[str]:
        """Return the options that name a file; an Avro schema may be given directly instead."""
        schemas = [
            f"{part}Schema"
            for part in ("key", "value")
            if options.get(f"{part}Format") == "avro" and not is_avro(options[f"{part}Schema"])
        ]
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
