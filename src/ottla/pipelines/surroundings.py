"""What a part of a pipeline needs to know besides its own keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ottla.client.config.common_config import shared_by_all
from ottla.client.config.setting_owners import ClientKind
from ottla.errors import ConfigError
from ottla.pipelines.client_settings import meant_for
from ottla.pipelines.dead_letters import DeadLetterTopic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

SERVERS = "bootstrap.servers"
CHECKPOINT = "checkpoint"
INPUTS = "inputs"
"""The folder in which a pipeline's other inputs have their homes."""


class Part(Protocol):
    """A source or sink that is a topic."""

    @property
    def bootstrap_servers(self) -> str | None: ...
    @property
    def kafka(self) -> Mapping[str, Any]: ...


def unchanged(text: str) -> str:
    return text


@dataclass(frozen=True)
class Surroundings:
    """The pipeline, as its source, steps and sink see it."""

    name: str = "pipeline"
    folder: Path = Path()
    """Where the pipeline file is."""
    predicates: Mapping[str, Any] = field(default_factory=dict)
    """The pipeline's, by their names in the file."""
    resolve: Callable[[str], str] = unchanged
    """Puts the values of secrets into a text."""
    resolve_address: Callable[[str], str] = unchanged
    """Puts the values of secrets into an address, where some characters mean something."""
    kafka: Mapping[str, str] = field(default_factory=dict)
    """Settings of clients, for topics that have no others."""
    home: Path = Path()
    """Where the pipeline keeps how far it is."""
    inputs: Mapping[str, DataFrame] = field(default_factory=dict)
    """The rows of the pipeline's other sources, by their names in the file."""
    tolerant: bool = False
    """Whether a step is to say which rows it cannot do, instead of failing."""
    may_wait: bool = False
    """Whether a look for rows that finds none may wait for some: nothing else of the query needs it to come back."""
    letters: DeadLetterTopic | None = None
    """The dead letters for rows that are no records of a topic; None if nothing is tolerated."""
    start: str | None = None
    """Offsets at which a source that is topics begins, by JSON; they win over what the file says."""

    @property
    def reader_name(self) -> str:
        """The pipeline's name, and that of the input where it is one that is read."""
        return f"{self.name}.{self.home.name}" if self.home.parent.name == INPUTS else self.name

    @property
    def checkpoint(self) -> Path:
        """Spark's checkpoint of the pipeline."""
        return self.home / CHECKPOINT

    def path(self, text: str) -> str:
        """A path, which is relative to the file; an address stays as it is."""
        path = self.resolve(text)
        return path if "://" in path else str((self.folder / path).absolute())

    def options(self, given: Mapping[str, Any]) -> dict[str, str]:
        """Options as Spark reads them."""
        return {name: self.resolve(text_of(value)) for name, value in given.items()}

    def clients(self, face: ClientKind, servers: str | None, kafka: Mapping[str, Any]) -> dict[str, str]:
        """The settings of such a client of a topic."""
        given = meant_for(face, {**self.kafka, **kafka})
        settings = self.options({**given, **({} if servers is None else {SERVERS: servers})})
        if SERVERS not in settings:
            raise ConfigError("no brokers are named; set bootstrap.servers under settings, such as 127.0.0.1:9092")
        return settings

    def any_client(self, face: ClientKind, part: Part | None) -> dict[str, str]:
        """The settings of such a client for the brokers of a topic: of the part's own settings those that all clients have.

        Without a part they are the brokers of all pipelines.
        """
        if part is None:
            return self.clients(face, None, {})
        return self.clients(face, part.bootstrap_servers, shared_by_all(part.kafka))

    def client_options(self, face: ClientKind, servers: str | None, kafka: Mapping[str, Any]) -> dict[str, str]:
        """The same as options of Spark's source and sink."""
        return {f"kafka.{name}": text for name, text in self.clients(face, servers, kafka).items()}


def text_of(value: str | bool | int | float) -> str:
    """A scalar as Spark and Kafka read it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def ignore(count: int) -> None:
    """Count nothing."""


@dataclass(frozen=True)
class How:
    """How a query is to run."""

    name: str
    checkpoint: str
    trigger: Mapping[str, Any]
    """What `DataStreamWriter.trigger` takes."""
    output_mode: Literal["append", "update", "complete"] = "append"
    routed: bool = False
    """Whether rows say to which topic they go."""
    dead_letter_topic: str | None = None
    """The dead letters for rows that a topic sink refuses."""
    count_dead_letters: Callable[[int], None] = ignore
    """Called in the driver with the number of rows of a batch that the sink put aside."""

    def writer(self, frame: DataFrame) -> DataStreamWriter:
        """What writes the rows, but for format and place."""
        writer = frame.writeStream.outputMode(self.output_mode).queryName(self.name).trigger(**self.trigger)
        return writer.option("checkpointLocation", self.checkpoint)
