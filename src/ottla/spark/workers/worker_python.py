"""Which Python a Spark of one machine starts its workers with: this one, by the quicker way.

Spark puts an archive of pyspark in front of what its processes import from. Python keeps no compiled form of what it
imports out of an archive, so each process compiles pyspark again, which takes it 0.6 s; the same pyspark lies installed,
and compiled, where this process has it from. On Linux workers are forked from a Python that has it loaded (`fork_server`).
"""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import site
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from ottla.spark.workers import fork_client

CLIENT = fork_client.__file__
SEED = "PYTHONHASHSEED"
loaded_too: set[str] = set()
"""Modules that the fork server loads besides its own: what tasks of a program on top of this one need, named before its session starts."""

SCRIPT = """\
#!/bin/sh
# Starts Python for Spark, without the archive of a pyspark that is installed; Ottla's session removes this file.
paths=":$PYTHONPATH:"
for archive in {archives}; do
    while true; do
        case "$paths" in
        *":$archive:"*) paths="${{paths%%":$archive:"*}}:${{paths#*":$archive:"}}" ;;
        *) break ;;
        esac
    done
done
paths="${{paths#:}}"
export PYTHONPATH="${{paths%:}}"
case "$1 $2" in
"-m pyspark.daemon") shift 2; set -- -m ottla.spark.workers.worker_daemon "$@" ;;  # Spark asks whom to start for tasks alone
esac
case "$1 $2" in
"-m ottla.spark.workers.worker_daemon" | "-m pyspark."*) exec {worker} "$@" ;;
*) exec {python} "$@" ;;
esac
"""


@cache
def worker_python() -> str:
    """The path of a program that is this Python, and leaves the archive out where it holds what is installed."""
    archive = archive_of_installed()
    if archive is None or os.name != "posix":
        return sys.executable
    home = Path(tempfile.mkdtemp(prefix="ottla-spark-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    program = home / "python"
    program.touch(stat.S_IRWXU)
    # Where nothing in the directory for temporary files may be run, the way is slower.
    if not os.access(program, os.X_OK):
        return sys.executable
    names = sorted({str(archive), str(archive.resolve())})  # Spark follows symbolic links before it names it
    program.write_text(script(names, start_fork_server(home) if sys.platform == "linux" else None))
    return str(program)


def script(archives: Sequence[str], server: Path | None) -> str:
    """The program; workers and their daemons are forked from the server, if there is one."""
    python = shlex.quote(sys.executable)
    worker = python if server is None else shlex.join([sys.executable, "-I", "-S", CLIENT, str(server)])
    return SCRIPT.format(archives=shlex.join(archives), python=python, worker=worker)


def start_fork_server(home: Path) -> Path:
    """Where it listens. It loads while Java starts, and ends with this process."""
    place = home / "fork"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        listener.listen(64)
        process = subprocess.Popen(
            [sys.executable, "-m", "ottla.spark.workers.fork_server", str(listener.fileno()), *sorted(loaded_too)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=[listener.fileno()],
            process_group=0,  # Ctrl-C is for this process, and would find that one importing
            # As Spark would have it for workers.
            env={SEED: "0", "OMP_NUM_THREADS": "1", **os.environ},
        )
    atexit.register(process.communicate)
    return place


def archive_of_installed() -> Path | None:
    """The archive inside of a pyspark that every process of this Python finds by itself; None where it is another."""
    import pyspark

    home = Path(pyspark.__file__).parent
    archive = home / "python" / "lib" / "pyspark.zip"
    told = os.environ.get("SPARK_HOME")
    is_its_own = told is None or Path(told).resolve() == home.resolve()
    return archive if is_its_own and archive.exists() and str(home.parent) in site.getsitepackages() else None
