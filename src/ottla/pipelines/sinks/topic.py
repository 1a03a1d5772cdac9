"""`type: topic`: a record for each row, with the options of Spark's sink `ottla`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from ottla.pipelines.model import Scalar, with_options
from ottla.pipelines.sinks.sink import Sink
from ottla.spark.options import SinkOptions

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
    bootstrap_servers: str | None = Field(default=None, alias="bootstrap.servers")
    """Other brokers than those of `settings`."""
    kafka: dict[str, Scalar] = {}
    """More settings of the producer, by Kafka's names."""

    def describe(self) -> str:
        return f"topic {self.topic or 'of each record'}"


TopicSink: type[Any] = with_options(TopicSinkBase, SinkOptions, OURS, "TopicSink")
