"""The Spark session that pipelines share."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

import ottla.spark
from ottla.errors import ConfigError
from ottla.pipelines.file.reading import Read
from ottla.pipelines.surroundings import text_of

QUIET = {"spark.log.level": "OFF"}
"""What fails is told in a sentence; Spark would tell it in a hundred lines."""
CHECKPOINTS = {
    # They lie in folders of this machine. There Spark's usual manager starts a `readlink` for each look at a file; both rename in one step.
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming.checkpointing."
    "FileSystemBasedCheckpointFileManager",
}
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
    settings |= given
    named = {name.replace(".", "__"): value for name, value in settings.items()}
    spark = ottla.spark.session("ottla pipelines", master or chosen, **named)
    server: Any = getattr(spark.sparkContext, "_accumulatorServer", None)
    if server is not None:  # where Java ends first, it would write a traceback to standard error
        server.handle_error = lambda request, address: None
    return spark


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
