"""`type: topic`: the records of topics, with the options of Spark's source `ottla`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from ottla.pipelines.model import Scalar, with_options
from ottla.pipelines.sources.source import Source
from ottla.spark.options import SourceOptions

OURS = {"kafka", "subscribe", "subscribe_pattern", "assign", "mode", "ending_offsets", "ending_timestamp"}
OURS |= {"ending_offsets_by_timestamp", "group_id_prefix", "fetch_offset_retries", "fetch_offset_retry_interval_ms"}
"""Options that this source gives itself, or that are for batches, or that do nothing."""


class TopicBase(Source):
    """The records of one or several topics."""

    type: Literal["topic"]
    topic: str | list[str] | None = None
    """The topic, or a list of them. Either this or `topicPattern` is required."""
    topic_pattern: str | None = None
    """A regular expression that a topic's whole name must match; new topics join."""
    starting_offsets: str = "earliest"
    """Where a pipeline that has no checkpoint begins: `earliest`, `latest`, or JSON as in Spark."""
    bootstrap_servers: str | None = Field(default=None, alias="bootstrap.servers")
    """Other brokers than those of `settings`."""
    kafka: dict[str, Scalar] = {}
    """More settings of the client, by Kafka's names."""

    @model_validator(mode="after")
    def one_way(self) -> TopicBase:
        if (self.topic is None) == (self.topic_pattern is None):
            raise ValueError("give either topic or topicPattern")
        if not self.names() and self.topic_pattern is None:
            raise ValueError("topic is empty; name a topic")
        return self

    def names(self) -> list[str]:
        """The topics that are named."""
        topics = [self.topic] if isinstance(self.topic, str) else self.topic or []
        return [name for name in topics if name.strip()]

    def describe(self) -> str:
        return f"topic {', '.join(self.names())}" if self.topic is not None else f"topics like {self.topic_pattern}"


TopicSource: type[Any] = with_options(TopicBase, SourceOptions, OURS, "TopicSource")
