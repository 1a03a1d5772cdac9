"""From what the file says to DataFrames: where the columns are found out, and with them most mistakes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple, cast

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from ottla.errors import ConfigError, OttlaError
from ottla.pipelines.dead_letters import DeadLetterTopic
from ottla.pipelines.file.reading import Read, checkpoints_of
from ottla.pipelines.manager.bad_rows import Letters
from ottla.pipelines.manager.fingerprint import Fingerprint, fingerprint_of, state_of
from ottla.pipelines.manager.reasons import reason_of
from ottla.pipelines.place import KeyMistake, Mistake, PipelineFileError, Place
from ottla.pipelines.rows import TOPIC, without_failed
from ottla.pipelines.sinks.topic import TopicSinkBase
from ottla.pipelines.sources.topic import TopicBase
from ottla.pipelines.surroundings import INPUTS, Surroundings, text_of


class Step(NamedTuple):
    """The columns after a step."""

    name: str
    schema: StructType


class Built(NamedTuple):
    """A pipeline that could be started."""

    read: Read
    around: Surroundings
    frame: DataFrame
    steps: list[Step]
    bad: DataFrame | None
    """Its dead letters, if it has any."""
    fingerprint: Fingerprint


def build(read: Read, spark: SparkSession, start: str | None = None) -> Built:
    """The streams of a pipeline; PipelineFileError where its columns are not what its steps need.

    `start`: the offsets at which a new checkpoint begins, where a reset has said so.
    """
    model = read.model
    # Another input, and what has a clock of its own, would have to wait for this one's records.
    may_wait = not model.inputs and all(step.is_timeless for step in model.transforms)
    around = replace(surroundings_of(read), start=start, may_wait=may_wait)
    tolerant = model.errors.tolerance == "all"
    if model.errors.dead_letter_topic is not None:
        with placed(read, "errors"):
            producer = around.any_client("producer", model.letters_part)
            around = replace(around, letters=DeadLetterTopic(model.errors.dead_letter_topic, read.name, producer))
    letters = Letters(read.name)
    with placed(read, "source"):
        frame = model.source.read(spark, around, tolerant)
        letters.begin(model.source.read_bad(spark, around) if tolerant else None)
    inputs: dict[str, DataFrame] = {}
    for name, source in model.inputs.items():
        with placed(read, "inputs", name):
            apart = replace(around, start=None, home=around.home / INPUTS / name)
            # Dead letters go to the brokers of the source.
            put_aside = tolerant and isinstance(model.source, TopicBase)
            inputs[name] = source.read(spark, apart, put_aside)
            letters.add(source.read_bad(spark, apart) if put_aside else None)
    around = replace(around, inputs=inputs)
    if model.routed and isinstance(model.sink, TopicSinkBase) and model.sink.topic is not None:
        frame = frame.withColumn(TOPIC, F.lit(model.sink.topic))
    steps = [Step(model.source.describe(), frame.schema)]
    for number, step in enumerate(model.transforms):
        with placed(read, "transforms", number):
            near = replace(around, tolerant=letters.takes(step))
            frame = without_failed(step.apply(frame, near))
            letters.follow(step, near)
        steps.append(Step(step.describe(), frame.schema))
    with placed(read, "sink"):
        if isinstance(model.sink, TopicSinkBase):
            model.sink.records(frame, model.routed)
        check_output_mode(frame, model.output_mode)
        model.sink.check(frame, around)
    plan = str(cast(Any, frame)._jdf.queryExecution().analyzed().toString())
    return Built(read, around, frame, steps, letters.all(), fingerprint_of(identity_of(read), plan))


def identity_of(read: Read) -> str:
    """What the checkpoint is about: the source, and the other inputs."""
    others = (f"{name} {source.identity()}" for name, source in read.model.inputs.items())
    return "; ".join([read.model.source.identity(), *others])


def check_output_mode(frame: DataFrame, mode: str) -> None:
    """What Spark would refuse when the query is started."""
    plan = str(cast(Any, frame)._jdf.queryExecution().analyzed().toString())
    aggregates = any(one.startswith(("Aggregate", "Distinct")) for one in state_of(plan))
    if mode == "append" and aggregates and "EventTimeWatermark" not in plan:
        raise ConfigError(
            "an aggregation never knows that a row is done without a watermark; give the sql step a watermark, or the "
            "pipeline outputMode: update"
        )
    if mode == "complete" and not aggregates:
        raise ConfigError("outputMode complete is for aggregations, and there is none; leave it out")


def surroundings_of(read: Read) -> Surroundings:
    """What the parts of a pipeline are told."""
    settings, resolve = read.settings, read.secrets.resolve
    kafka = {name: resolve(text_of(value)) for name, value in settings.kafka.items()}
    if settings.bootstrap_servers is not None:
        kafka["bootstrap.servers"] = resolve(settings.bootstrap_servers)
    return Surroundings(
        read.name,
        read.folder,
        read.model.predicates,
        resolve,
        read.secrets.resolve_address,
        kafka,
        checkpoints_of(read) / read.name,
    )


@contextmanager
def placed(read: Read, *path: str | int) -> Iterator[None]:
    """What is wrong in here is a mistake at this place of the file."""
    try:
        yield
    except PipelineFileError:
        raise
    except KeyMistake as error:
        raise mistake_at(read.place(*path, error.key), read, error) from error
    except (OttlaError, PySparkException, ValueError, TypeError) as error:
        raise mistake_at(read.place(*path), read, error) from error


def mistake_at(place: Place, read: Read, error: Exception) -> PipelineFileError:
    """The error as a mistake in the file, without secrets."""
    return PipelineFileError([Mistake(place, read.secrets.hidden(reason_of(error)))])
