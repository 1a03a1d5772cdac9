"""`type: topic`: a record for each row, written with Spark's sink `ottla`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, field_validator, model_validator
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StringType, StructType

from ottla.errors import ConfigError
from ottla.pipelines.kafka_names import checked_servers, checked_topic
from ottla.pipelines.model import Scalar, with_options
from ottla.pipelines.pipeline_context import PipelineContext, QuerySettings
from ottla.pipelines.rows import (
    HEADERS,
    KEY,
    TIMESTAMP,
    TOMBSTONE,
    TOPIC,
    WHOLE,
    checked_names,
    column,
    in_json,
    is_whole,
    require_column,
    values,
)
from ottla.pipelines.schema_files import find_mistakes, read_written_schema
from ottla.pipelines.sinks.sink import Sink
from ottla.settings_class import changed
from ottla.spark.options import REGISTRY_URL, SinkOptions, check_sink_registry, read_sink_options, spelling
from ottla.spark.sink.dead_letter_count import COUNT_FILE
from ottla.spark.sink.write_stream import write_stream

if TYPE_CHECKING:
    from ottla.schemas import Schema

OURS = {
    "kafka",
    "topic",
    "dead_letter_topic",
    "query_id",
    "batch_id",
    "delivery_guarantee",
    "dead_letter_count_file",
    "key_schema_version",
    "auto_register_schemas",
}

CHECKED = ("topic", *(f"{part}_{what}" for part in ("key", "value") for what in ("schema", "subject", "message")))
"""The fields of registered keys and values, in addition to their formats and versions."""


class TopicSinkBase(Sink):
    """Each row becomes a record.

    Columns such as `_key` and `_headers` give the parts of the record, and the others are its value.
    """

    type: Literal["topic"]
    topic: str | None = None
    """The topic of all rows. Without it each row is written to the topic that it was read from, or that a router chose."""
    key: str | None = None
    """The column that becomes the key; without it the key of the source's record, if it has one."""
    key_format: Literal["avro", "json", "protobuf"] | None = None
    """The format of registered keys: with the id of their schema in front. Without it, keys are text or bytes."""
    key_schema: str | None = None
    """The schema of keys, as in `valueSchema`."""
    key_schema_version: int | Literal["latest"] | None = None
    """The version of the keys' subject, as in `valueSchemaVersion`."""
    value_format: Literal["json", "string", "raw", "avro", "protobuf"] | None = None
    """`json`: the columns as an object; `string` and `raw`: the only column unchanged; `avro`, `protobuf`: the columns in
    this format with the id of their schema in front, which needs `schemaRegistryUrl` under `settings`. The default is
    `json`, except for a single column named `value` that is text or bytes.
    """
    registered: bool = False
    """With `json`: values have the id of their JSON Schema in front, too."""
    value_schema: str | None = None
    """The schema of registered values, as text or as a file of it. The default is the schema of the columns."""
    value_schema_version: int | Literal["latest"] | None = None
    """The version of the subject with which registered values are written. Nothing is registered then."""
    auto_register_schemas: bool | None = None
    """False: the subjects must have the schemas already."""
    delivery_guarantee: Literal["at_least_once", "exactly_once"] = "exactly_once"
    """`exactly_once`: each row is committed once, and readers need `isolation.level=read_committed`."""
    table: bool = False
    """The topic is a table with the last value of each key: it is created compacted, and served by the running manager
    (`GET /tables/<topic>/<key>`).
    """
    bootstrap_servers: str | None = Field(default=None, alias="bootstrap.servers")
    """Brokers other than those of `settings`."""
    kafka: dict[str, Scalar] = {}
    """More settings of the producer, by Kafka's names."""

    _servers = field_validator("bootstrap_servers")(checked_servers)

    _topic = field_validator("topic")(checked_topic)

    @model_validator(mode="after")
    def a_table_has_a_name(self) -> TopicSinkBase:
        if self.table and self.topic is None:
            raise ValueError("table: true needs topic, which is the table's name")
        return self

    def check_registry(self, has_registry: bool) -> None:
        """Raise ConfigError for keys that need a schema registry, or that exclude each other. This reads no file."""
        if self.registered and self.value_format != "json":
            raise ConfigError("registered: true is for valueFormat json; leave it out")
        parts = self.registered_parts()
        for part in parts if not has_registry else ():
            form = getattr(self, f"{part}_format")
            raise ConfigError(f"{part}Format {form} needs a schema registry: {REGISTRY_URL} under settings")
        if self.value_format == "json" and not self.registered:
            for name in ("value_schema", "value_schema_version", "value_subject"):
                if getattr(self, name, None) is not None:
                    raise ConfigError(f"option {spelling(name)} with valueFormat json needs registered: true")
        given = {name: getattr(self, name) for name in CHECKED if getattr(self, name, None) is not None}
        given |= {f"{part}_schema_version": str(version) for part, version in self.versions().items()}
        given |= {f"{part}_format": getattr(self, f"{part}_format") for part in parts}
        check_sink_registry(changed(SinkOptions(), registry={"url": ""} if parts else {}, **given), False)

    def registered_parts(self) -> list[str]:
        """Return the parts of a record that are written with schema ids: `key`, `value`."""
        is_registered = self.value_format in ("avro", "protobuf") or (self.value_format == "json" and self.registered)
        return [*(["key"] if self.key_format is not None else []), *(["value"] if is_registered else [])]

    def versions(self) -> dict[str, int | str]:
        """Return the versions of subjects with which keys and values are written."""
        found = {"key": self.key_schema_version, "value": self.value_schema_version}
        return {part: version for part, version in found.items() if version is not None}

    def subjects(self, context: PipelineContext) -> Iterator[str]:
        """Yield the subjects in which the sink may register schemas."""
        if self.topic is None or self.auto_register_schemas is False:
            return
        for part in self.registered_parts():
            if part not in self.versions():
                yield context.resolve(getattr(self, f"{part}_subject", None) or f"{self.topic}-{part}")

    def describe(self) -> str:
        return f"topic {self.topic or 'of each record'}"

    def promise(self) -> str:
        return self.delivery_guarantee.replace("_", " ")

    def start(self, frame: DataFrame, context: PipelineContext, query_settings: QuerySettings) -> StreamingQuery:
        rows = self.records(frame, query_settings.routed)
        options = self.writing_options(context, query_settings.routed)
        if query_settings.dead_letter_topic is not None:
            options["deadLetterTopic"] = query_settings.dead_letter_topic
            options["deadLetterCountFile"] = str(Path(query_settings.checkpoint, COUNT_FILE))
        if query_settings.output_mode == "append":
            return query_settings.writer(rows).format("ottla").options(**options).start()
        return write_stream(
            rows,
            options,
            checkpoint=query_settings.checkpoint,
            output_mode=query_settings.output_mode,
            trigger=query_settings.trigger,
            query_name=query_settings.name,
        )

    def find_misplaced(self, context: PipelineContext) -> Iterator[tuple[str, str]]:
        for part in ("key", "value"):
            schema = getattr(self, f"{part}_schema")
            if schema is not None and getattr(self, f"{part}_format") == "avro":
                yield from find_mistakes({f"{part}Format": "avro", f"{part}Schema": schema}, context)

    def find_schemas(self, frame: DataFrame, context: PipelineContext) -> Mapping[str, Schema]:
        if not self.registered_parts():
            return {}
        from ottla.spark.sink.registered_values import check_encodings

        options = read_sink_options(self.writing_options(context))
        return check_encodings(options, self.records(frame, False).schema)

    def check_registered(self, context: PipelineContext) -> None:
        """Check the subject of the sink, before its rows are known; nothing is registered."""
        from ottla.spark.sink.registered_values import check_subjects

        check_subjects(read_sink_options(self.writing_options(context)))

    def writing_options(self, context: PipelineContext, routed: bool = False) -> dict[str, str]:
        """Return the options of Spark's sink."""
        options = context.options({**self.given(), "deliveryGuarantee": self.delivery_guarantee})
        options |= context.client_options("producer", self.bootstrap_servers, self.kafka)
        if self.topic is not None and not routed:
            options["topic"] = context.resolve(self.topic)
        if self.registered_parts():
            options |= context.registry
            options |= {f"{part}SchemaVersion": str(version) for part, version in self.versions().items()}
            if self.auto_register_schemas is not None:
                options["autoRegisterSchemas"] = str(self.auto_register_schemas).lower()
        for part in self.registered_parts():
            form, schema = getattr(self, f"{part}_format"), getattr(self, f"{part}_schema")
            options[f"{part}Format"] = form
            if schema is not None:
                options[f"{part}Schema"] = read_written_schema(form, schema, context)
        return options

    def records(self, frame: DataFrame, routed: bool) -> DataFrame:
        """Return the rows with the columns of the sink: key, value, headers, timestamp, topic."""
        parts = {"value": self.value_of(frame)}
        if TOMBSTONE in frame.columns:
            parts["value"] = F.when(~column(TOMBSTONE), parts["value"])
        if self.key is not None:
            checked_names(values(frame), [self.key])
            parts["key"] = self.key_of(frame, self.key)
        elif KEY in frame.columns:
            parts["key"] = self.key_of(frame, KEY)
        if getattr(self, "include_headers", None):
            require_column(frame, HEADERS)
        if HEADERS in frame.columns:
            parts["headers"] = column(HEADERS)
        if getattr(self, "include_timestamp", None):
            parts["timestamp"] = column(require_column(frame, TIMESTAMP))
        if routed or self.topic is None:
            parts["topic"] = column(require_column(frame, TOPIC))
        return frame.select(*(one.alias(name) for name, one in parts.items()))

    def key_of(self, frame: DataFrame, name: str) -> Column:
        """Return the key of each record: the column unchanged if it is written with a schema, else text or bytes."""
        return column(name) if self.key_format is not None else bytes_of(column(name), frame.schema[name].dataType)

    def value_of(self, frame: DataFrame) -> Column:
        """Return the value of each record."""
        names = values(frame)
        kind = frame.schema[names[0]].dataType
        plain = isinstance(kind, StringType | BinaryType)
        form = self.value_format or ("raw" if is_whole(frame) and plain else "json")
        if "value" in self.registered_parts():
            return column(WHOLE) if is_whole(frame) else F.struct(*map(column, names))
        if form == "json":
            whole = is_whole(frame) and isinstance(kind, StructType | ArrayType | MapType)
            return in_json(column(WHOLE) if whole else F.struct(*map(column, names)))
        if len(names) > 1:
            raise ConfigError(
                f"valueFormat {form} needs a single column, and there are {', '.join(names)}; combine them into one"
            )
        return bytes_of(column(names[0]), kind)

    def given(self) -> dict[str, Any]:
        """Return the options of Spark's sink that the file sets."""
        fields = type(self).model_fields
        chosen = {name: getattr(self, name) for name in fields if name not in TopicSinkBase.model_fields}
        return {fields[name].alias or name: value for name, value in chosen.items() if value is not None}


def bytes_of(one: Column, kind: DataType) -> Column:
    """Return a column as text or bytes; structs, arrays and maps are written as JSON."""
    if isinstance(kind, StringType | BinaryType):
        return one
    return in_json(one) if isinstance(kind, StructType | ArrayType | MapType) else one.cast("string")


TopicSink: type[Any] = with_options(TopicSinkBase, SinkOptions, OURS, "TopicSink")
