"""`type: topic`: a record for each row, written with Spark's sink `ottla`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

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
from ottla.pipelines.sinks.sink import Sink
from ottla.spark.options import SinkOptions
from ottla.spark.sink.dead_letter_count import COUNT_FILE
from ottla.spark.sink.write_stream import write_stream

OURS = {"kafka", "topic", "dead_letter_topic", "query_id", "batch_id", "delivery_guarantee", "dead_letter_count_file"}


class TopicSinkBase(Sink):
    """Each row becomes a record.

    Columns such as `_key` and `_headers` give the parts of the record, and the others are its value.
    """

    type: Literal["topic"]
    topic: str | None = None
    """The topic of all rows. Without it each row is written to the topic that it was read from, or that a router chose."""
    key: str | None = None
    """The column that becomes the key; without it the key of the source's record, if it has one."""
    value_format: Literal["json", "string", "raw"] | None = None
    """`json`: the columns as an object; `string` and `raw`: the only column unchanged. The default is `json`, except
    for a single column named `value` that is text or bytes.
    """
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

    def describe(self) -> str:
        return f"topic {self.topic or 'of each record'}"

    def promise(self) -> str:
        return self.delivery_guarantee.replace("_", " ")

    def start(self, frame: DataFrame, context: PipelineContext, query_settings: QuerySettings) -> StreamingQuery:
        rows = self.records(frame, query_settings.routed)
        options = context.options({**self.given(), "deliveryGuarantee": self.delivery_guarantee})
        options |= context.client_options("producer", self.bootstrap_servers, self.kafka)
        if self.topic is not None and not query_settings.routed:
            options["topic"] = context.resolve(self.topic)
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

    def records(self, frame: DataFrame, routed: bool) -> DataFrame:
        """Return the rows with the columns of the sink: key, value, headers, timestamp, topic."""
        parts = {"value": self.value_of(frame)}
        if TOMBSTONE in frame.columns:
            parts["value"] = F.when(~column(TOMBSTONE), parts["value"])
        if self.key is not None:
            checked_names(values(frame), [self.key])
            parts["key"] = bytes_of(column(self.key), frame.schema[self.key].dataType)
        elif KEY in frame.columns:
            parts["key"] = bytes_of(column(KEY), frame.schema[KEY].dataType)
        if getattr(self, "include_headers", None):
            require_column(frame, HEADERS)
        if HEADERS in frame.columns:
            parts["headers"] = column(HEADERS)
        if getattr(self, "include_timestamp", None):
            parts["timestamp"] = column(require_column(frame, TIMESTAMP))
        if routed or self.topic is None:
            parts["topic"] = column(require_column(frame, TOPIC))
        return frame.select(*(one.alias(name) for name, one in parts.items()))

    def value_of(self, frame: DataFrame) -> Column:
        """Return the value of each record."""
        names = values(frame)
        kind = frame.schema[names[0]].dataType
        plain = isinstance(kind, StringType | BinaryType)
        form = self.value_format or ("raw" if is_whole(frame) and plain else "json")
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
