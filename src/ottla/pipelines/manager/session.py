"""The Spark session that pipelines share."""

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
from ottla.pipelines.file.reading import Read
from ottla.pipelines.sinks import SINKS
from ottla.pipelines.sinks.database import DatabaseSink
from ottla.pipelines.sinks.http import HttpSink
from ottla.pipelines.sources import SOURCES
from ottla.pipelines.sources.fed import FedSource
from ottla.pipelines.surroundings import text_of
from ottla.spark.workers.worker_python import loaded_too

QUIET = {"spark.log.level": "OFF"}
"""What fails is told in a sentence; Spark would tell it in a hundred lines."""
CHECKPOINTS = {
    # They lie in folders of this machine. There Spark's usual manager starts a `readlink` for each look at a file; both rename in one step.
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming.checkpointing."
    "FileSystemBasedCheckpointFileManager",
}
FEEDS = "ottla.pipelines.feeds.feed_source"
DRIVERS = ("psycopg", "pymysql")
LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""With these Spark's Python side writes each error that it raises, all of Java's trace included, to standard error."""


def session_for(reads: Sequence[Read], master: str | None = None) -> SparkSession:
    """The session that the files ask for; ConfigError where they do not agree."""
    settings: dict[str, str] = QUIET | CHECKPOINTS
    given: dict[str, str] = {}
    for read in reads:
        asked = {name: read.secrets.resolve(text_of(value)) for name, value in read.settings.spark.items()}
        asked |= {"master": read.settings.master} if "master" in read.settings.model_fields_set else {}
        for name, value in asked.items():
            if given.setdefault(name, value) != value:
                raise ConfigError(
                    f"setting {name} is another in {read.document.file}; pipelines share one session: say it once"
                )
    chosen = given.pop("master", "local[*]")
    hush()
    let_workers_import(str(read.folder) for read in reads)
    loaded_too.update(needed_by_workers(reads))
    settings |= given
    named = {name.replace(".", "__"): value for name, value in settings.items()}
    spark = ottla.spark.session("ottla pipelines", master or chosen, **named)
    server: Any = getattr(spark.sparkContext, "_accumulatorServer", None)
    if server is not None:  # where Java ends first, it would write a traceback to standard error
        server.handle_error = lambda request, address: None
    return spark


def needed_by_workers(reads: Iterable[Read]) -> Iterator[str]:
    """Modules that each process which reads or writes rows would load for itself; of drivers those that this one has loaded.

    None where other packages bring connectors, which are loaded with ours: what they begin is not to be forked.
    """
    if any(not kind.__module__.startswith("ottla.") for kind in (*SOURCES.values(), *SINKS.values())):
        return
    for read in reads:
        parts = (read.model.source, *read.model.inputs.values(), read.model.sink)
        for part in parts:
            if isinstance(part, FedSource | DatabaseSink | HttpSink):
                yield from (FEEDS, type(part).__module__, *(name for name in DRIVERS if name in sys.modules))


def hush() -> None:
    """Leave it to us to tell what Spark raises."""
    for name in LOGGERS:
        PySparkLogger.getLogger(name).disabled = True


def end_session(spark: SparkSession) -> None:
    """Stop Spark; that its Java has ended already was told, where it is to be told."""
    with warnings.catch_warnings(), suppress(Py4JError, OSError):
        warnings.simplefilter("ignore", RuntimeWarning)
        spark.stop()


def let_workers_import(folders: Iterable[str]) -> None:
    """Have Spark's workers find functions that lie beside the files."""
    there = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    new = [folder for folder in dict.fromkeys(folders) if folder not in there]
    os.environ["PYTHONPATH"] = os.pathsep.join([*new, *filter(None, there)])
