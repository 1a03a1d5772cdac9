"""The Spark session shared by all pipelines."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

import ottla.spark
from ottla.errors import ConfigError
from ottla.pipelines.file.reading import PipelineDefinition
from ottla.pipelines.pipeline_context import text_of
from ottla.pipelines.sinks import SINKS
from ottla.pipelines.sinks.database import DatabaseSink
from ottla.pipelines.sinks.http import HttpSink
from ottla.pipelines.sources import SOURCES
from ottla.pipelines.sources.fed import FedSource
from ottla.spark.workers.worker_python import loaded_too

QUIET = {"spark.log.level": "OFF"}
"""Errors are reported in one sentence; Spark would log a hundred lines."""
CHECKPOINTS = {
    # Checkpoints are in local folders. Spark's default manager starts a `readlink` process for each access there; both
    # rename atomically.
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming.checkpointing."
    "FileSystemBasedCheckpointFileManager",
}
FEEDS = "ottla.pipelines.feeds.feed_source"
DRIVERS = ("psycopg", "pymysql")
LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Loggers of PySpark that write each raised error with Java's stack trace to standard error."""


def session_for(reads: Sequence[PipelineDefinition], master: str | None = None) -> SparkSession:
    """Return the session with the settings of the files; ConfigError if they conflict."""
    settings: dict[str, str] = QUIET | CHECKPOINTS
    given: dict[str, str] = {}
    for read in reads:
        wanted = {name: read.secrets.resolve(text_of(value)) for name, value in read.settings.spark.items()}
        wanted |= {"master": read.settings.master} if "master" in read.settings.model_fields_set else {}
        for name, value in wanted.items():
            if given.setdefault(name, value) != value:
                raise ConfigError(
                    f"setting {name} has another value in {read.document.file}; pipelines share one session: set it once"
                )
    chosen = given.pop("master", "local[*]")
    disable_error_logging()
    add_worker_path(str(read.folder) for read in reads)
    loaded_too.update(needed_by_workers(reads))
    settings |= given
    named = {name.replace(".", "__"): value for name, value in settings.items()}
    spark = ottla.spark.session("ottla pipelines", master or chosen, **named)
    server: Any = getattr(spark.sparkContext, "_accumulatorServer", None)
    if server is not None:  # it would print a traceback if Java ends first
        server.handle_error = lambda request, address: None
    return spark


def needed_by_workers(reads: Iterable[PipelineDefinition]) -> Iterator[str]:
    """Yield the modules that each process that reads or writes rows would import, and the drivers imported here.

    None if other packages provide connectors: these are imported too, and threads that they start must not be forked.
    """
    if any(not kind.__module__.startswith("ottla.") for kind in (*SOURCES.values(), *SINKS.values())):
        return
    for read in reads:
        parts = (read.model.source, *read.model.inputs.values(), read.model.sink)
        for part in parts:
            if isinstance(part, FedSource | DatabaseSink | HttpSink):
                yield from (FEEDS, type(part).__module__, *(name for name in DRIVERS if name in sys.modules))


def disable_error_logging() -> None:
    """Disable PySpark's own logging of errors."""
    for name in LOGGERS:
        PySparkLogger.getLogger(name).disabled = True


def end_session(spark: SparkSession) -> None:
    """Stop Spark; ignore errors if its Java process has ended already, which was reported."""
    with warnings.catch_warnings(), suppress(Py4JError, OSError):
        warnings.simplefilter("ignore", RuntimeWarning)
        spark.stop()


def add_worker_path(folders: Iterable[str]) -> None:
    """Add the folders of the pipeline files to the workers' PYTHONPATH, so that they can import modules there."""
    there = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    new = [folder for folder in dict.fromkeys(folders) if folder not in there]
    os.environ["PYTHONPATH"] = os.pathsep.join([*new, *filter(None, there)])
