"""The context of a part of a pipeline: everything that it needs apart from its own keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ottla.client.config.common_config import shared_by_all
from ottla.client.config.setting_owners import ClientKind
from ottla.errors import ConfigError
from ottla.pipelines.client_settings import settings_for
from ottla.pipelines.dead_letters import DeadLetterTopic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from ottla.schemas import Schema

SERVERS = "bootstrap.servers"
CHECKPOINT = "checkpoint"
INPUTS = "inputs"
"""The folder with the states of a pipeline's other inputs."""


class Part(Protocol):
    """A source or sink that is a topic."""

    @property
    def bootstrap_servers(self) -> str | None: ...
    @property
    def kafka(self) -> Mapping[str, Any]: ...


def unchanged(text: str) -> str:
    return text


@dataclass(frozen=True)
class PipelineContext:
    """The context in which a source, a transform or a sink is built."""

    name: str = "pipeline"
    folder: Path = Path()
    """The folder of the pipeline file."""
    predicates: Mapping[str, Any] = field(default_factory=dict)
    """The pipeline's predicates by name."""
    resolve: Callable[[str], str] = unchanged
    """Replaces the placeholders of secrets in a text."""
    resolve_address: Callable[[str], str] = unchanged
    """Replaces the placeholders of secrets in an address, and percent-encodes them where necessary."""
    kafka: Mapping[str, str] = field(default_factory=dict)
    """Settings of clients for topics without their own."""
    registry: Mapping[str, str] = field(default_factory=dict)
    """The schema registry, as options of Spark's source and sink; empty if the file names none."""
    schemas: Mapping[str, str] = field(default_factory=dict)
    """The schemas to which registered values of a source are converted, as options of Spark's source."""
    pending: Mapping[str, Schema | None] = field(default_factory=dict)
    """The schemas that other pipelines will register, by subject; None for a schema that is not known yet."""
    home: Path = Path()
    """The folder with the pipeline's checkpoint and state."""
    inputs: Mapping[str, DataFrame] = field(default_factory=dict)
    """The rows of the pipeline's other sources by name."""
    tolerant: bool = False
    """True if a transform marks the rows that it cannot process instead of failing."""
    may_wait: bool = False
    """True if a poll that finds no rows may wait for some. Only so if no other part of the query needs the poll to
    return.
    """
    dead_letters: DeadLetterTopic | None = None
    """The dead-letter topic for rows that are not records of a topic; None if no errors are tolerated."""
    start: str | None = None
    """Start offsets of a source that is topics, as JSON; they take precedence over the file's."""

    @property
    def reader_name(self) -> str:
        """The pipeline's name; for another input, with the input's name appended."""
        return f"{self.name}.{self.home.name}" if self.home.parent.name == INPUTS else self.name

    @property
    def checkpoint(self) -> Path:
        """Spark's checkpoint of the pipeline."""
        return self.home / CHECKPOINT

    def path(self, text: str) -> str:
        """Return an absolute path; a path is relative to the folder of the file, and an address is unchanged."""
        path = self.resolve(text)
        return path if "://" in path else str((self.folder / path).absolute())

    def options(self, given: Mapping[str, Any]) -> dict[str, str]:
        """Return options as text for Spark, with secrets resolved."""
        return {name: self.resolve(text_of(value)) for name, value in given.items()}

    def clients(self, face: ClientKind, servers: str | None, kafka: Mapping[str, Any]) -> dict[str, str]:
        """Return the settings of such a client; ConfigError if no brokers are configured."""
        given = settings_for(face, {**self.kafka, **kafka})
        settings = self.options({**given, **({} if servers is None else {SERVERS: servers})})
        if SERVERS not in settings:
            raise ConfigError(
                "no brokers are configured; set bootstrap.servers under settings, for example 127.0.0.1:9092"
            )
        return settings

    def any_client(self, face: ClientKind, part: Part | None) -> dict[str, str]:
        """Return the settings of such a client for the brokers of a topic, with those of the part's settings that all clients have.

        Without a part, return the settings for the brokers of all pipelines.
        """
        if part is None:
            return self.clients(face, None, {})
        return self.clients(face, part.bootstrap_servers, shared_by_all(part.kafka))

    def client_options(self, face: ClientKind, servers: str | None, kafka: Mapping[str, Any]) -> dict[str, str]:
        """Return the settings of such a client as options of Spark's source and sink."""
        return {f"kafka.{name}": text for name, text in self.clients(face, servers, kafka).items()}


def text_of(value: str | bool | int | float) -> str:
    """Return a scalar as text for Spark and Kafka."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def ignore(count: int) -> None:
    """Ignore the count of dead letters."""


@dataclass(frozen=True)
class QuerySettings:
    """The settings of a streaming query."""

    name: str
    checkpoint: str
    trigger: Mapping[str, Any]
    """The arguments of `DataStreamWriter.trigger`."""
    output_mode: Literal["append", "update", "complete"] = "append"
    routed: bool = False
    """True if each row names the topic that it is written to."""
    dead_letter_topic: str | None = None
    """The dead-letter topic for rows that a topic sink rejects."""
    count_dead_letters: Callable[[int], None] = ignore
    """Called in the driver with the number of rows of a batch that the sink put aside."""

    def writer(self, frame: DataFrame) -> DataStreamWriter:
        """Return the writer of the query, without format and destination."""
        writer = frame.writeStream.outputMode(self.output_mode).queryName(self.name).trigger(**self.trigger)
        return writer.option("checkpointLocation", self.checkpoint)
