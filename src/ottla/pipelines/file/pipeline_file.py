"""What a pipeline file says, as models."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from ottla.config import unknown
from ottla.pipelines.file.choice import by_type, one_of, predicate_by_type, transform_by_key
from ottla.pipelines.kafka_names import check_topics, checked_servers
from ottla.pipelines.model import Model, Scalar
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


def listed(value: Any) -> Any:
    """One server, or several in a list, as Kafka has them."""
    return ",".join(value) if isinstance(value, list) and all(isinstance(one, str) for one in value) else value


Servers = Annotated[str, BeforeValidator(listed, json_schema_input_type=str | list[str])]


class Settings(Model):
    """What holds for all pipelines of a file."""

    bootstrap_servers: Servers | None = Field(default=None, alias="bootstrap.servers")
    """The brokers of topics that name no others, such as `127.0.0.1:9092`."""
    kafka: dict[str, Scalar] = {}
    """More settings of the clients of all topics, by Kafka's names; each client is told those that it knows."""
    checkpoints: str = "state"
    """The folder in which pipelines keep how far they are; relative to the file."""
    master: str = "local[*]"
    """Where Spark runs; `ottla pipeline run --master` wins."""
    spark: dict[str, Scalar] = {}
    """Settings of the Spark session, such as `spark.driver.memory: 2g`."""

    _servers = field_validator("bootstrap_servers")(checked_servers)


class Errors(Model):
    """What becomes of records that cannot be read or written."""

    tolerance: Literal["none", "all"] = "none"
    """`none`: the pipeline stops at the first. `all`: it continues, and they are written to the dead-letter topic."""
    dead_letter_topic: str | None = None
    """The topic that they are written to, as they came, with headers that have the cause."""

    @field_validator("dead_letter_topic")
    @classmethod
    def is_topic(cls, name: str | None) -> str | None:
        check_topics([name] if name is not None else [])
        return name

    @model_validator(mode="after")
    def nothing_is_lost_in_silence(self) -> Errors:
        if self.tolerance == "all" and not self.dead_letter_topic:
            raise ValueError("tolerance all needs deadLetterTopic: what cannot be read would be lost without a trace")
        if self.tolerance == "none" and self.dead_letter_topic:
            raise ValueError("deadLetterTopic is for tolerance all; set it, or leave deadLetterTopic out")
        return self


class PipelineModel(Model):
    """One pipeline: a source, transforms in their order, a sink."""

    source: AnySource
    """Where rows come from."""
    inputs: dict[str, AnySource] = {}
    """Other sources that steps may name: SQL as tables, joins as what they join with."""
    transforms: list[AnyTransform] = []
    """What happens to them, in this order."""
    sink: AnySink
    """Where they go."""
    predicates: dict[str, AnyPredicate] = {}
    """What transforms may ask of records, by names of one's own."""
    errors: Errors = Errors()
    """What becomes of records that cannot be read or written."""
    trigger: str = "1 second"
    """How often it looks for new rows."""
    output_mode: Literal["append", "update", "complete"] = "append"
    """Which rows of an aggregation go to the sink: those that will not change, those that did, or all of them."""
    allow_loop: bool = False
    """Whether its rows may come back to it, through its own sink or through pipelines that read from each other in a ring."""

    @field_validator("trigger")
    @classmethod
    def trigger_is_a_span(cls, text: str) -> str:
        if not SPAN.fullmatch(text):
            raise ValueError(f"{text!r} is no span of time; write such as `1 second`")
        return text

    @field_validator("inputs")
    @classmethod
    def inputs_are_tables(cls, inputs: dict[str, AnySource]) -> dict[str, AnySource]:
        for name in inputs:
            if not INPUT_NAME.fullmatch(name) or name == INPUT:
                raise ValueError(
                    f"{name!r} is no name of an input, which has letters, digits and underscores, and is not input"
                )
        return inputs

    @model_validator(mode="after")
    def predicates_are_there(self) -> PipelineModel:
        for step in self.transforms:
            wanted = step.predicate if isinstance(step, ConnectTransform) else None
            if wanted is not None and wanted not in self.predicates:
                there = f" The predicates are {', '.join(self.predicates)}." if self.predicates else ""
                raise ValueError(f"{unknown('predicate', wanted, self.predicates)}{there}; name it under predicates")
        return self

    @model_validator(mode="after")
    def topics_are_known(self) -> PipelineModel:
        if not isinstance(self.sink, TopicSinkBase):
            if self.routed:
                raise ValueError(f"a router needs a sink that is a topic, and this one is {self.sink.type}")
            return self
        of_topics = isinstance(self.source, TopicBase)
        if self.sink.topic is None and not of_topics:
            raise ValueError("the sink needs topic: only records of a topic bring one with them")
        if self.sink.topic is not None and self.routed and of_topics:
            raise ValueError(
                "the sink's topic and a router exclude each other: rows go where the router says; leave one out"
            )
        return self

    @property
    def letters_part(self) -> TopicBase | TopicSinkBase | None:
        """The part whose brokers have its dead letters; None if no part is a topic, and they are at the brokers of all pipelines."""
        for part in (self.source, self.sink):
            if isinstance(part, TopicBase | TopicSinkBase):
                return part
        return None

    @property
    def routed(self) -> bool:
        """Whether a transform says where rows go."""
        return any(isinstance(step, Router) for step in self.transforms)


class PipelineFile(Model):
    settings: Settings = Settings()
    """What holds for all of them."""
    pipelines: dict[str, PipelineModel]
    """The pipelines by name; names are those of their checkpoints."""

    @field_validator("pipelines")
    @classmethod
    def names_are_of_folders(cls, pipelines: dict[str, PipelineModel]) -> dict[str, PipelineModel]:
        if not pipelines:
            raise ValueError("there are no pipelines; name one")
        for name in pipelines:
            if not NAME.fullmatch(name):
                raise ValueError(
                    f"{name!r} is no name of a pipeline, which has letters, digits, dots, dashes and underscores"
                )
        return pipelines
