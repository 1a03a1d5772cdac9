"""A Spark standalone cluster on one machine: a master and workers in separate processes, on free loopback ports."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pyspark

from tools.class_archive import QUICK

HOME = Path(pyspark.__file__).parent
SOURCES = Path(__file__).parent.parent / "src"
START_SECONDS = 120
CLUSTER_LOG4J = """rootLogger.level = info
rootLogger.appenderRef.file.ref = err
appender.file.type = Console
appender.file.name = err
appender.file.target = SYSTEM_ERR
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""


class Daemon:
    """A master or worker with all its child processes."""

    def __init__(self, folder: Path, name: str, kind: str, *arguments: str) -> None:
        self.log = folder / f"{name}.log"
        settings = folder / "log4j2.properties"
        settings.write_text(CLUSTER_LOG4J)
        environment = os.environ | {
            "SPARK_HOME": str(HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": f"-Dlog4j2.configurationFile={settings.as_uri()}",
            "JAVA_TOOL_OPTIONS": QUICK,  # for executors too, which run only for seconds
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": "",  # a worker has to find Ottla at the path of the job
        }
        command = [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", "--host", "127.0.0.1"]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "--port", "0", "--webui-port", "0", *arguments],
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )

    def waited_for(self, pattern: str) -> str:
        """Wait for `pattern` in the log, and return its first group."""
        deadline = time.monotonic() + START_SECONDS
        while (found := re.search(pattern, self.log.read_text(errors="replace"))) is None:
            assert self.process.poll() is None, f"it ended: {self.log.read_text(errors='replace')[-2000:]}"
            assert time.monotonic() < deadline, f"{pattern} is not in {self.log}"
            time.sleep(0.1)
        return found[1]

    def kill(self) -> None:
        """Kill the daemon and its executors at once with SIGKILL."""
        family = [*psutil.Process(self.process.pid).children(recursive=True), psutil.Process(self.process.pid)]
        for member in family:
            try:
                os.kill(member.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait()

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()


class Cluster:
    """A master and two workers with one core each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.daemons: list[Daemon] = []
        try:
            master = self.start(folder, "master", "master.Master")
            self.url = master.waited_for(r"Starting Spark master at (spark://\S+)")
            self.workers = [
                self.start(
                    folder,
                    f"worker-{n}",
                    "worker.Worker",
                    *("--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"work-{n}"), self.url),
                )
                for n in range(2)
            ]
            for worker in self.workers:
                worker.waited_for(r"Successfully registered with (master) ")
        except BaseException:
            self.close()
            raise

    def start(self, folder: Path, name: str, kind: str, *arguments: str) -> Daemon:
        daemon = Daemon(folder, name, kind, *arguments)
        self.daemons.append(daemon)
        return daemon

    def close(self) -> None:
        for daemon in reversed(self.daemons):
            daemon.close()


@contextmanager
def spark_cluster(folder: Path) -> Iterator[Cluster]:
    cluster = Cluster(folder)
    try:
        yield cluster
    finally:
        cluster.close()


def shipped(folder: Path) -> Path:
    """Return an archive of Ottla's Python files for `--py-files`. The hot loops in it run uncompiled."""
    archive = folder / "ottla.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as files:
        for source in sorted(SOURCES.rglob("*.py")):
            files.write(source, source.relative_to(SOURCES))
    return archive
