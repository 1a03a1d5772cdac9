"""Spark's classes as Java has them once loaded, kept in a file: a driver that has them starts in half the time.

Tests and the demo start dozens of drivers, and what each does first, for seconds, is to unpack and check the same thousands of
classes. Java 17 writes them to an archive at the end of a process that was told to, and takes them from there if
Java and class path are the same; if they are not, it starts as ever.

python -m tools.class_archive            makes the one of this Java and this Spark, if there is none, and prints Java's options for it
python -m tools.class_archive FILE       writes one
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from ottla.spark.java import find_java, version_text

FOLDER = Path(__file__).parents[1] / "out"
OPTIONS = "SPARK_SUBMIT_OPTS"
"""The variable with options for the Java of every driver."""
QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off -XX:TieredStopAtLevel=1"
DEADLINE = 600.0


def class_archive() -> Path:
    """The archive for this Java and this Spark; made first, in some twenty seconds, where there is none."""
    known = f"{version('pyspark')} {sys.prefix} {version_text(find_java(os.environ))}"
    archive = FOLDER / f"spark-classes-{hashlib.sha256(known.encode()).hexdigest()[:12]}.jsa"
    if not archive.exists():
        FOLDER.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            made = Path(folder, "classes.jsa")
            command = [sys.executable, "-m", "tools.class_archive", str(made)]
            subprocess.run(command, check=True, timeout=DEADLINE, capture_output=True)
            made.replace(archive)
    return archive


def driver_options(archive: Path) -> str:
    """What to tell Java so that it takes classes from there."""
    return f"-XX:SharedArchiveFile={archive} {QUIET}"


def write(archive: Path) -> None:
    """Run a small stream, so that its classes are loaded, and wait until Java has written them down."""
    os.environ[OPTIONS] = f"-XX:ArchiveClassesAtExit={archive} {QUIET}"
    from ottla import Broker
    from tests.spark.copy_job import Job
    from tests.spark.topics import Topics, new_session

    with tempfile.TemporaryDirectory() as folder, Broker() as broker:
        spark = new_session(folder)
        java = spark.sparkContext._gateway.proc  # type: ignore[union-attr]  # there is one once a session runs
        job = Job(Topics(spark, broker.bootstrap_servers, "archive"), Path(folder, "checkpoint"))
        job.feed(10)
        job.run()
        assert spark.range(10).selectExpr("sum(id)").collect()
        spark.stop()
        java.stdin.close()
        assert java.wait(DEADLINE) == 0


if __name__ == "__main__":
    if sys.argv[1:]:
        write(Path(sys.argv[1]))
    else:
        print(driver_options(class_archive()))
