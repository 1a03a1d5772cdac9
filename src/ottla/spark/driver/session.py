"""A Spark session with settings for streams on one machine; on a cluster, start the session as usual there."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING, NoReturn

from ottla.spark.driver.class_archive import archived_classes
from ottla.spark.driver.interruptible import run_interruptibly
from ottla.spark.driver.java import ensure_java
from ottla.spark.driver.lookup_python import ensure_python, use_python
from ottla.spark.driver.threads import activate
from ottla.spark.driver.versions import ensure_versions
from ottla.spark.workers.worker_python import worker_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",  # Spark's default would create 200 state stores for a query
    "spark.sql.adaptive.streaming.stateless.enabled": "false",  # a replayed batch must have the same tasks
    "spark.sql.python.filterPushdown.enabled": "true",  # filters on partition, offset and time limit the records that are read
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

LOCAL = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
"""A Spark in one process does not need connections from other machines."""

WORKERS = {
    # Over TCP a task of a few rows takes tens of milliseconds longer.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.daemon.module": "ottla.spark.workers.worker_daemon",
}
"""The connection between Spark and its Python workers on systems with Unix domain sockets."""


def session(name: str = "ottla", master: str = "local[*]", **settings: str) -> SparkSession:
    """Start Spark, or return the running session; `settings` are Spark's, with `__` for each dot.

    `session("flights", spark__driver__memory="1g")`. JavaError or VersionError if there is no suitable Java, pyspark,
    pyarrow or pandas; ConfigError for a configured Python that does not exist.
    """
    ensure_versions()
    ensure_java()
    chosen = SETTINGS | {key.replace("__", "."): value for key, value in settings.items()}
    if master.startswith("local"):
        chosen = LOCAL | (WORKERS if os.name == "posix" else {}) | chosen
        # Spark would start its workers with the first `python3` of the PATH, which need not be this one.
        use_python(worker_python())
    ensure_python()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name).master(master)
    for key, value in chosen.items():
        builder = builder.config(key, value)
    with archived_classes():
        spark: SparkSession = run_interruptibly(builder.getOrCreate)
    activate(spark)
    cancel_at_interrupt(spark)
    return spark


if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def cancel_at_interrupt(session: SparkSession) -> None:
    """Cancel the session's jobs before KeyboardInterrupt is raised, unless the program has its own handler."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    context = session.sparkContext

    def cancel(number: int, frame: object) -> NoReturn:
        try:
            context.cancelAllJobs()
        finally:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, cancel)
