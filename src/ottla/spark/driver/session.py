"""A Spark session that suits streams of one machine; on a cluster, start the session as you do there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ottla.spark.driver.cancelling import cancel_at_interrupt
from ottla.spark.driver.class_archive import archived_classes
from ottla.spark.driver.interruptible import interruptible
from ottla.spark.driver.java import ensure_java
from ottla.spark.driver.lookup_python import ensure_python, use_python
from ottla.spark.driver.threads import activate
from ottla.spark.driver.versions import ensure_versions
from ottla.spark.workers.worker_python import worker_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",  # Spark's 200 would make 200 state stores of a laptop's query
    "spark.sql.adaptive.streaming.stateless.enabled": "false",  # a replayed batch must have the same tasks
    "spark.sql.python.filterPushdown.enabled": "true",  # predicates on partition, offset and time: read only what counts
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

LOCAL = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
"""Nobody else needs to reach a Spark that is all in one process."""

WORKERS = {
    # Through TCP a task of a few rows takes some tens of milliseconds longer.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.daemon.module": "ottla.spark.workers.worker_daemon",
}
"""How Spark and its Python workers meet on a machine that has sockets of the file system."""


def session(name: str = "ottla", master: str = "local[*]", **settings: str) -> SparkSession:
    """Start Spark, or get the one that runs; `settings` are Spark's, with `__` for each dot.

    `session("flights", spark__driver__memory="1g")`. JavaError or VersionError, in one
    sentence, where there is no Java for it, or a pyspark, pyarrow or pandas that will not do; ConfigError for a Python that is
    not there.
    """
    ensure_versions()
    ensure_java()
    chosen = SETTINGS | {key.replace("__", "."): value for key, value in settings.items()}
    if master.startswith("local"):
        chosen = LOCAL | (WORKERS if os.name == "posix" else {}) | chosen
        # Spark would start its workers with whatever `python3` the PATH has, which need not be this one.
        use_python(worker_python())
    ensure_python()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name).master(master)
    for key, value in chosen.items():
        builder = builder.config(key, value)
    with archived_classes():
        spark: SparkSession = interruptible(builder.getOrCreate)
    activate(spark)
    cancel_at_interrupt(spark)
    return spark
