"""Builds DataFrames from a pipeline file. Spark analyzes the columns here, so most mistakes are found here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from ottla.errors import ConfigError, OttlaError
from ottla.pipelines.dead_letters import DeadLetterTopic
from ottla.pipelines.file.reading import PipelineDefinition, checkpoints_of
from ottla.pipelines.manager.bad_rows import DeadLetterStream
from ottla.pipelines.manager.fingerprint import Fingerprint, fingerprint_of, state_of
from ottla.pipelines.manager.reasons import reason_of
from ottla.pipelines.pipeline_context import INPUTS, PipelineContext, text_of
from ottla.pipelines.place import KeyMistake, Mistake, PipelineFileError, Place
from ottla.pipelines.rows import TOPIC, without_failed
from ottla.pipelines.sinks.topic import TopicSinkBase
from ottla.pipelines.sources import Source
from ottla.pipelines.sources.topic import TopicBase

if TYPE_CHECKING:
    from ottla.schemas import Schema

SourceSchemas = Mapping[str, Mapping[str, str]]
"""The schemas of registered values by source (`source`, `inputs.NAME`), as options of Spark's source."""


class BuiltStep(NamedTuple):
    """A transform with the columns after it."""

    name: str
    schema: StructType


class Built(NamedTuple):
    """A pipeline that is ready to start."""

    read: PipelineDefinition
    context: PipelineContext
    frame: DataFrame
    steps: list[BuiltStep]
    bad: DataFrame | None
    """Its dead letters, if it can have any."""
    fingerprint: Fingerprint
    schemas: SourceSchemas
    """The schemas to which registered values are converted."""
    written: Mapping[str, Schema]
    """The schemas that its sink will register, by subject."""


def build(
    read: PipelineDefinition, spark: SparkSession, start: str | None = None, schemas: SourceSchemas | None = None
) -> Built:
    """Return the streams of a pipeline; PipelineFileError if its columns do not fit its transforms.

    `start` has the offsets for a new checkpoint after a reset, `schemas` the result of `find_schemas`.
    """
    model = read.model
    schemas = find_schemas(read, {}) if schemas is None else schemas
    # Other inputs, and transforms with timers, must not wait for records of this source.
    may_wait = not model.inputs and all(step.is_timeless for step in model.transforms)
    context = replace(context_of(read), start=start, may_wait=may_wait)
    tolerant = model.errors.tolerance == "all"
    if model.errors.dead_letter_topic is not None:
        with at_place(read, "errors"):
            producer = context.any_client("producer", model.dead_letter_part)
            context = replace(
                context, dead_letters=DeadLetterTopic(model.errors.dead_letter_topic, read.name, producer)
            )
    dead_letters = DeadLetterStream(read.name)
    with at_place(read, "source"):
        own = replace(context, schemas=schemas.get("source", {}))
        frame = model.source.read(spark, own, tolerant)
        dead_letters.start_with(model.source.read_bad(spark, own) if tolerant else None)
    inputs: dict[str, DataFrame] = {}
    for name, source in model.inputs.items():
        with at_place(read, "inputs", name):
            mine = schemas.get(f"inputs.{name}", {})
            apart = replace(context, start=None, home=context.home / INPUTS / name, schemas=mine)
            # Dead letters are written to the brokers of the source.
            put_aside = tolerant and isinstance(model.source, TopicBase)
            inputs[name] = source.read(spark, apart, put_aside)
            dead_letters.add(source.read_bad(spark, apart) if put_aside else None)
    context = replace(context, inputs=inputs)
    if model.is_routed and isinstance(model.sink, TopicSinkBase) and model.sink.topic is not None:
        frame = frame.withColumn(TOPIC, F.lit(model.sink.topic))
    steps = [BuiltStep(model.source.describe(), frame.schema)]
    for number, step in enumerate(model.transforms):
        with at_place(read, "transforms", number):
            near = replace(context, tolerant=dead_letters.is_taking(step))
            frame = without_failed(step.apply(frame, near))
            dead_letters.apply_transform(step, near)
        steps.append(BuiltStep(step.describe(), frame.schema))
    with at_place(read, "sink"):
        if isinstance(model.sink, TopicSinkBase):
            model.sink.records(frame, model.is_routed)
        check_output_mode(frame, model.output_mode)
        model.sink.check(frame, context)
        written = model.sink.find_schemas(frame, context)
    plan = str(cast(Any, frame)._jdf.queryExecution().analyzed().toString())
    fingerprint = fingerprint_of(identity_of(read), plan)
    return Built(read, context, frame, steps, dead_letters.dead_letter_rows(), fingerprint, schemas, written)


def sources_of(read: PipelineDefinition) -> Iterator[tuple[tuple[str, ...], Source]]:
    """Yield the sources of a pipeline with their paths in the file."""
    yield ("source",), read.model.source
    for name, source in read.model.inputs.items():
        yield ("inputs", name), source


def find_schemas(read: PipelineDefinition, pending: Mapping[str, Schema | None]) -> SourceSchemas:
    """Return the schemas of registered values, requested from the registry; PipelineFileError if one cannot be found.

    `pending` has schemas that other pipelines will register.
    """
    context = replace(context_of(read), pending=pending)
    found: dict[str, Mapping[str, str]] = {}
    for path, source in sources_of(read):
        with at_place(read, *path):
            if schemas := source.find_schemas(context):
                found[".".join(path)] = schemas
    return found


def identity_of(read: PipelineDefinition) -> str:
    """Return the identity of the source and the other inputs, for the checkpoint."""
    others = (f"{name} {source.identity()}" for name, source in read.model.inputs.items())
    return "; ".join([read.model.source.identity(), *others])


def check_output_mode(frame: DataFrame, mode: str) -> None:
    """Raise ConfigError for an output mode that Spark would reject at the start of the query."""
    plan = str(cast(Any, frame)._jdf.queryExecution().analyzed().toString())
    aggregates = any(one.startswith(("Aggregate", "Distinct")) for one in state_of(plan))
    if mode == "append" and aggregates and "EventTimeWatermark" not in plan:
        raise ConfigError(
            "an aggregation cannot know that a row is final without a watermark; give the sql transform a watermark, or the "
            "pipeline outputMode: update"
        )
    if mode == "complete" and not aggregates:
        raise ConfigError("outputMode complete needs an aggregation, and there is none; leave it out")


def context_of(read: PipelineDefinition) -> PipelineContext:
    """Return the context of the parts of a pipeline."""
    settings, resolve = read.settings, read.secrets.resolve
    kafka = {name: resolve(text_of(value)) for name, value in settings.kafka.items()}
    if settings.bootstrap_servers is not None:
        kafka["bootstrap.servers"] = resolve(settings.bootstrap_servers)
    return PipelineContext(
        read.name,
        read.folder,
        read.model.predicates,
        resolve,
        read.secrets.resolve_address,
        kafka,
        settings.registry_options(read.folder, resolve, read.secrets.resolve_address),
        home=checkpoints_of(read) / read.name,
    )


@contextmanager
def at_place(read: PipelineDefinition, *path: str | int) -> Iterator[None]:
    """Raise errors of the block as mistakes at this place of the file."""
    try:
        yield
    except PipelineFileError:
        raise
    except KeyMistake as error:
        raise mistake_at(read.place(*path, error.key), read, error) from error
    except (OttlaError, PySparkException, ValueError, TypeError) as error:
        raise mistake_at(read.place(*path), read, error) from error


def mistake_at(place: Place, read: PipelineDefinition, error: Exception) -> PipelineFileError:
    """Return the error as a mistake in the file, with secrets hidden."""
    return PipelineFileError([Mistake(place, read.secrets.hide(reason_of(error)))])
