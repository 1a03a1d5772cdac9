"""From what the file says to DataFrames: where the columns are found out, and with them most mistakes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from ottla.errors import ConfigError, OttlaError
from ottla.pipelines.file.reading import Read
from ottla.pipelines.manager.fingerprint import Fingerprint, state_of
from ottla.pipelines.manager.reasons import reason_of
from ottla.pipelines.place import Mistake, PipelineFileError, Place
from ottla.pipelines.rows import TOPIC
from ottla.pipelines.sinks.topic import TopicSinkBase
from ottla.pipelines.surroundings import Surroundings, text_of


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


def build(read: Read, spark: SparkSession) -> Built:
    """The streams of a pipeline; PipelineFileError where its columns are not what its steps need."""
    model, around = read.model, surroundings_of(read)
    tolerant = model.errors.tolerance == "all"
    with placed(read, "source"):
        frame = model.source.read(spark, around, tolerant)
        bad = model.source.read_bad(spark, around) if tolerant else None
    if model.routed and isinstance(model.sink, TopicSinkBase) and model.sink.topic is not None:
        frame = frame.withColumn(TOPIC, F.lit(model.sink.topic))
    steps = [Step(model.source.describe(), frame.schema)]
    for number, step in enumerate(model.transforms):
        with placed(read, "transforms", number):
            frame = step.apply(frame, around)
        steps.append(Step(step.describe(), frame.schema))
    with placed(read, "sink"):
        if isinstance(model.sink, TopicSinkBase):
            model.sink.records(frame, model.routed)
        check_output_mode(frame, model.output_mode)
    plan = str(cast(Any, frame)._jdf.queryExecution().analyzed().toString())
    return Built(read, around, frame, steps, bad, Fingerprint(model.source.identity(), state_of(plan)))


def check_output_mode(frame: DataFrame, mode: str) -> None:
    """What Spark would refuse when the query is started."""
    plan = str(cast(Any, frame)._jdf.queryExecution().analyzed().toString())
    aggregates = any(one.startswith("Aggregate") for one in state_of(plan))
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
    return Surroundings(read.name, read.folder, read.model.predicates, resolve, kafka)


@contextmanager
def placed(read: Read, *path: str | int) -> Iterator[None]:
    """What is wrong in here is a mistake at this place of the file."""
    try:
        yield
    except PipelineFileError:
        raise
    except (OttlaError, PySparkException, ValueError, TypeError) as error:
        raise mistake_at(read.place(*path), read, error) from error


def mistake_at(place: Place, read: Read, error: Exception) -> PipelineFileError:
    """The error as a mistake in the file, without secrets."""
    return PipelineFileError([Mistake(place, read.secrets.hidden(reason_of(error)))])
