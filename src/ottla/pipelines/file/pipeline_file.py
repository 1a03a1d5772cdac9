"""The models of a pipeline file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from ottla.config import unknown
from ottla.pipelines.file.choice import by_type, one_of, predicate_by_type, transform_by_key
from ottla.pipelines.kafka_names import checked_servers, checked_topic
from ottla.pipelines.model import Model, Scalar
from ottla.pipelines.registry_settings import RegistrySettings
from ottla.pipelines.sinks import SINKS, Sink
from ottla.pipelines.sinks.topic import TopicSinkBase
from ottla.pipelines.sources import SOURCES, Source
from ottla.pipelines.sources.topic import TopicBase
from ottla.pipelines.transforms import (
    CONNECT,
    PREDICATES,
    STREAM_STEPS,
    FunctionTransform,
    Predicate,
    SqlTransform,
    Transform,
)
from ottla.pipelines.transforms.connect.connect_transform import ConnectTransform
from ottla.pipelines.transforms.connect.routers import Router
from ottla.pipelines.transforms.sql import INPUT

TRANSFORMS: dict[str, type[Any]] = {"sql": SqlTransform, "function": FunctionTransform, **CONNECT, **STREAM_STEPS}
INPUT_NAME = re.compile(r"[^\W\d]\w*")
NAME = re.compile(r"[\w][\w.-]{0,99}")
SPAN = re.compile(r"\s*\d+(\.\d+)?\s*(milliseconds?|seconds?|minutes?|hours?)\s*", re.IGNORECASE)

if TYPE_CHECKING:
    AnySource = Source
    AnySink = Sink
    AnyTransform = Transform
    AnyPredicate = Predicate
else:
    AnySource = one_of(SOURCES, by_type)
    AnySink = one_of(SINKS, by_type)
    AnyTransform = one_of(TRANSFORMS, transform_by_key)
    AnyPredicate = one_of(PREDICATES, predicate_by_type)


def join_servers(value: Any) -> Any:
    """Return the bootstrap servers as one text; Kafka also accepts a list."""
    return ",".join(value) if isinstance(value, list) and all(isinstance(one, str) for one in value) else value


Servers = Annotated[str, BeforeValidator(join_servers, json_schema_input_type=str | list[str])]


class PipelineSettings(RegistrySettings):
    """The settings of all pipelines of a file."""

    bootstrap_servers: Servers | None = Field(default=None, alias="bootstrap.servers")
    """The brokers of topics that configure no others, such as `127.0.0.1:9092`."""
    kafka: dict[str, Scalar] = {}
    """Further settings of the clients of all topics, by Kafka's names; each client receives the settings that it knows."""
    checkpoints: str = "state"
    """The folder with the checkpoints of the pipelines, relative to the file."""
    master: str = "local[*]"
    """The master of Spark; `ottla pipeline run --master` takes precedence."""
    spark: dict[str, Scalar] = {}
    """Settings of the Spark session, such as `spark.driver.memory: 2g`."""

    _servers = field_validator("bootstrap_servers")(checked_servers)


class Errors(Model):
    """The handling of records that cannot be read or written."""

    tolerance: Literal["none", "all"] = "none"
    """`none`: the pipeline stops at the first. `all`: it continues, and they are written to the dead-letter topic."""
    dead_letter_topic: str | None = None
    """The topic that receives them unchanged, with the cause in headers."""

    _dead_letter_topic = field_validator("dead_letter_topic")(checked_topic)

    @model_validator(mode="after")
    def nothing_is_lost_in_silence(self) -> Errors:
        if self.tolerance == "all" and not self.dead_letter_topic:
            raise ValueError("tolerance all needs deadLetterTopic: records that cannot be read would be lost")
        if self.tolerance == "none" and self.dead_letter_topic:
            raise ValueError("deadLetterTopic needs tolerance: all; set it, or leave deadLetterTopic out")
        return self


class PipelineModel(Model):
    """One pipeline: a source, transforms in their order, and a sink."""

    source: AnySource
    """The source of the rows."""
    inputs: dict[str, AnySource] = {}
    """Other sources that transforms may name: tables in SQL, or the other side of a join."""
    transforms: list[AnyTransform] = []
    """The transforms of the rows, in this order."""
    sink: AnySink
    """The destination of the rows."""
    predicates: dict[str, AnyPredicate] = {}
    """The predicates of transforms, by names of your choice."""
    errors: Errors = Errors()
    """The handling of records that cannot be read or written."""
    trigger: str = "1 second"
    """The interval between two checks for new rows."""
    output_mode: Literal["append", "update", "complete"] = "append"
    """The rows of an aggregation that are written to the sink: rows that are final, rows that changed, or all rows."""
    allow_loop: bool = False
    """Allows rows to return to the pipeline, through its own sink or through pipelines that read from each other in a
    ring.
    """

    @field_validator("trigger")
    @classmethod
    def trigger_is_a_span(cls, text: str) -> str:
        if not SPAN.fullmatch(text):
            raise ValueError(f"{text!r} is not a duration; write for example `1 second`")
        return text

    @field_validator("inputs")
    @classmethod
    def inputs_are_tables(cls, inputs: dict[str, AnySource]) -> dict[str, AnySource]:
        for name in inputs:
            if not INPUT_NAME.fullmatch(name) or name == INPUT:
                raise ValueError(
                    f"{name!r} is not a valid input name: use letters, digits and underscores, and not the name input"
                )
        return inputs

    @model_validator(mode="after")
    def predicates_are_there(self) -> PipelineModel:
        for step in self.transforms:
            wanted = step.predicate if isinstance(step, ConnectTransform) else None
            if wanted is not None and wanted not in self.predicates:
                there = f" The predicates are {', '.join(self.predicates)}." if self.predicates else ""
                raise ValueError(f"{unknown('predicate', wanted, self.predicates)}{there}; define it under predicates")
        return self

    @model_validator(mode="after")
    def topics_are_known(self) -> PipelineModel:
        if not isinstance(self.sink, TopicSinkBase):
            if self.is_routed:
                raise ValueError(f"a router needs a topic sink, and this sink is {self.sink.type}")
            return self
        of_topics = isinstance(self.source, TopicBase)
        if self.sink.topic is None and not of_topics:
            raise ValueError("the sink needs topic: only records of a topic have one")
        if self.sink.topic is not None and self.is_routed and of_topics:
            raise ValueError("the sink has a topic and a router chooses one too; leave one out")
        for part in self.sink.registered_parts() if self.is_routed else ():
            form = getattr(self.sink, f"{part}_format")
            raise ValueError(
                f"{part}Format {form} needs one topic for all rows, and a router chooses it; leave the router out"
            )
        return self

    @property
    def dead_letter_part(self) -> TopicBase | TopicSinkBase | None:
        """The part with the brokers for its dead letters; None if no part is a topic, and they are written to the brokers of all pipelines."""
        for part in (self.source, self.sink):
            if isinstance(part, TopicBase | TopicSinkBase):
                return part
        return None

    @property
    def is_routed(self) -> bool:
        """True if a transform chooses the topic of each row."""
        return any(isinstance(step, Router) for step in self.transforms)


class PipelineFile(Model):
    settings: PipelineSettings = PipelineSettings()
    """The settings of all pipelines."""
    pipelines: dict[str, PipelineModel]
    """The pipelines by name; the name is also that of the checkpoint."""

    @field_validator("pipelines")
    @classmethod
    def names_are_of_folders(cls, pipelines: dict[str, PipelineModel]) -> dict[str, PipelineModel]:
        if not pipelines:
            raise ValueError("there are no pipelines; define one")
        for name in pipelines:
            if not NAME.fullmatch(name):
                raise ValueError(
                    f"{name!r} is not a valid pipeline name: use letters, digits, dots, dashes and underscores"
                )
        return pipelines
