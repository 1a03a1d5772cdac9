"""Runs a small pipeline, so that Java loads the classes that pipelines need, and keeps them in an archive.

`python -m ottla.pipelines.archived_run ARCHIVE` is started by `start_archive_build` in the background of `ottla pipeline
run`. It uses a broker, a session and a folder of its own. A failure at any point leaves no archive.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from ottla.spark.driver.class_archive import MAKING, OPTIONS, publish_archive, read_options, write_options
from ottla.spark.driver.java import find_java

DEADLINE = 600.0
"""Seconds that Java may take to write its classes."""
RECORDS = 10
SCHEMA = "id bigint, at timestamp, amount double"
WINDOWS = (
    "select window(at, '1 minute').start as minute, sum(amount) as amount from input group by window(at, '1 minute')"
)


def write_archive(archive: Path, options: str = "") -> None:
    """Write an archive of the classes that pipelines need, which takes some twenty seconds; `options` are further JVM options."""
    archive.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with TemporaryDirectory(dir=archive.parent, prefix=MAKING) as folder:
        made = Path(folder, "classes.jsa")
        os.environ[OPTIONS] = f"{os.environ.get(OPTIONS, '')} {write_options(made)} {options}".strip()
        run_small_pipelines(Path(folder))
        run_pipelines(made)
        publish_archive(made, archive)


def run_small_pipelines(folder: Path) -> None:
    """Run pipelines from topic to topic and to a table, stateless and stateful; return after Java has ended."""
    from ottla import Broker
    from ottla.pipelines.pipeline import Pipeline

    with Broker() as broker:
        settings = {"bootstrap.servers": broker.bootstrap_servers, "checkpoints": "state/", "master": "local[2]"}
        produce_records(broker.bootstrap_servers)
        given: dict[str, Any] = {"settings": settings, "folder": folder}
        source = {"type": "topic", "topic": "in"}
        rows = source | {"valueFormat": "json", "valueSchema": SCHEMA}
        watermark = {"sql": WINDOWS, "watermark": {"column": "at", "delay": "1 second"}}
        Pipeline(name="copy", source=source, sink={"type": "topic", "topic": "out"}, **given).run(once=True)
        windows: list[dict[str, Any]] = [{"type": "MaskField", "fields": "id"}, watermark]
        Pipeline(
            name="windows", source=rows, transforms=windows, sink={"type": "topic", "topic": "windows"}, **given
        ).run(once=True)
        end_java()


def run_pipelines(made: Path) -> None:
    """Start Java with the archive and compare its checksums; CalledProcessError if the archive is incomplete, for instance on a full disk."""
    command = [find_java(os.environ), *read_options(made).split(), "-XX:+VerifySharedSpaces", "-version"]
    subprocess.run(command, check=True, capture_output=True, timeout=DEADLINE, cwd=made.parent)


def produce_records(servers: str) -> None:
    """Write some records to read."""
    from ottla import Producer

    with Producer(bootstrap_servers=servers) as producer:
        for number in range(RECORDS):
            producer.send("in", b'{"id": %d, "at": "2026-01-01T00:0%d:00Z", "amount": 1.5}' % (number, number))


def end_java() -> None:
    """Stop Spark and wait for its Java process, which writes the archive when it ends."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    java = cast(Any, spark.sparkContext)._gateway.proc
    spark.stop()
    java.stdin.close()
    if java.wait(DEADLINE):
        raise RuntimeError(f"Java ended with {java.returncode}")


def lower_priority() -> None:
    """Lower the priority of this process and its children, so that they only use idle processor time."""
    with suppress(OSError, AttributeError):
        os.nice(19)
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def main(arguments: Sequence[str]) -> None:
    lower_priority()
    write_archive(Path(arguments[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
