"""`type: topic`: a record for each row, with the options of Spark's sink `ottla`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StringType, StructType

from ottla.errors import ConfigError
from ottla.pipelines.kafka_names import check_topics, checked_servers
from ottla.pipelines.model import Scalar, with_options
from ottla.pipelines.rows import (
    HEADERS,
    KEY,
    TIMESTAMP,
    TOMBSTONE,
    TOPIC,
    WHOLE,
    column,
    in_json,
    is_whole,
    known,
    needed,
    values,
)
from ottla.pipelines.sinks.sink import Sink
from ottla.pipelines.surroundings import How, Surroundings
from ottla.spark.options import SinkOptions
from ottla.spark.sink.write_stream import write_stream

OURS = {"kafka", "topic", "dead_letter_topic", "query_id", "batch_id", "delivery_guarantee"}


class TopicSinkBase(Sink):
    """Each row becomes a record; the columns are its value, those named `_key`, `_headers` and so on what they say."""

    type: Literal["topic"]
    topic: str | None = None
    """Where every row goes. Without it each goes to the topic that it came from, or that a router gave it."""
    key: str | None = None
    """The column that becomes the key; without it the key that the record had, if any."""
    value_format: Literal["json", "string", "raw"] | None = None
    """`json`: the columns as an object; `string` and `raw`: the only column as it is. By default `json`, except for a
    single column named `value` that is text or bytes."""
    delivery_guarantee: Literal["at_least_once", "exactly_once"] = "exactly_once"
    """`exactly_once`: each row is committed once, and readers need `isolation.level=read_committed`."""
    table: bool = False
    """Whether the topic is a table, of the last value of each key: made compacted, and served by the running manager
    (`GET /tables/<topic>/<key>`)."""
    bootstrap_servers: str | None = Field(default=None, alias="bootstrap.servers")
    """Other brokers than those of `settings`."""
    kafka: dict[str, Scalar] = {}
    """More settings of the producer, by Kafka's names."""

    _servers = field_validator("bootstrap_servers")(checked_servers)

    @field_validator("topic")
    @classmethod
    def is_topic(cls, name: str | None) -> str | None:
        check_topics([name] if name is not None else [])
        return name

    @model_validator(mode="after")
    def a_table_has_a_name(self) -> TopicSinkBase:
        if self.table and self.topic is None:
            raise ValueError("table true needs topic, which is the table's name")
        return self

    def describe(self) -> str:
        return f"topic {self.topic or 'of each record'}"

    def promise(self) -> str:
        return self.delivery_guarantee.replace("_", " ")

    def start(self, frame: DataFrame, around: Surroundings, how: How) -> StreamingQuery:
        rows = self.records(frame, how.routed)
        options = around.options({**self.given(), "deliveryGuarantee": self.delivery_guarantee})
        options |= around.client_options("producer", self.bootstrap_servers, self.kafka)
        if self.topic is not None and not how.routed:
            options["topic"] = around.resolve(self.topic)
        if how.dead_letter_topic is not None:
            options["deadLetterTopic"] = how.dead_letter_topic
        if how.output_mode == "append":
            return how.writer(rows).format("ottla").options(**options).start()
        return write_stream(
            rows,
            options,
            checkpoint=how.checkpoint,
            output_mode=how.output_mode,
            trigger=how.trigger,
            query_name=how.name,
        )

    def records(self, frame: DataFrame, routed: bool) -> DataFrame:
        """The rows as the sink takes them: key, value, headers, topic."""
        parts = {"value": self.value_of(frame)}
        if TOMBSTONE in frame.columns:
            parts["value"] = F.when(~column(TOMBSTONE), parts["value"])
        if self.key is not None:
            known(values(frame), [self.key])
            parts["key"] = bytes_of(column(self.key), frame.schema[self.key].dataType)
        elif KEY in frame.columns:
            parts["key"] = bytes_of(column(KEY), frame.schema[KEY].dataType)
        if getattr(self, "include_headers", None):
            needed(frame, HEADERS)
        if HEADERS in frame.columns:
            parts["headers"] = column(HEADERS)
        if getattr(self, "include_timestamp", None):
            parts["timestamp"] = column(needed(frame, TIMESTAMP))
        if routed or self.topic is None:
            parts["topic"] = column(needed(frame, TOPIC))
        return frame.select(*(one.alias(name) for name, one in parts.items()))

    def value_of(self, frame: DataFrame) -> Column:
        """The value of each record."""
        names = values(frame)
        kind = frame.schema[names[0]].dataType
        plain = isinstance(kind, StringType | BinaryType)
        form = self.value_format or ("raw" if is_whole(frame) and plain else "json")
        if form == "json":
            whole = is_whole(frame) and isinstance(kind, StructType | ArrayType | MapType)
            return in_json(column(WHOLE) if whole else F.struct(*map(column, names)))
        if len(names) > 1:
            raise ConfigError(
                f"valueFormat {form} is for one column, and there are {', '.join(names)}; make one of them"
            )
        return bytes_of(column(names[0]), kind)

    def given(self) -> dict[str, Any]:
        """The options of Spark's sink that the file gives."""
        fields = type(self).model_fields
        chosen = {name: getattr(self, name) for name in fields if name not in TopicSinkBase.model_fields}
        return {fields[name].alias or name: value for name, value in chosen.items() if value is not None}


def bytes_of(one: Column, kind: DataType) -> Column:
    """A column as text or bytes: what is made of parts is JSON, all else its text."""
    if isinstance(kind, StringType | BinaryType):
        return one
    return in_json(one) if isinstance(kind, StructType | ArrayType | MapType) else one.cast("string")


TopicSink: type[Any] = with_options(TopicSinkBase, SinkOptions, OURS, "TopicSink")
