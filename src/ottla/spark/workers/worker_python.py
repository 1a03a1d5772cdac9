"""The Python that a local Spark uses for its workers: this one, with a faster start.

Spark puts an archive of pyspark first on the import path of its processes. Python does not cache the compiled form of
modules in an archive, so each process compiles pyspark again, which takes 0.6 s. The same pyspark is installed and
compiled on this process's import path. On Linux, workers are forked from a Python that has imported it (`fork_server`).
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
"""Further modules that the fork server imports, for tasks of a program that uses this package. They must be added
before its session starts.
"""

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
    """Return the path of a program that starts this Python, without pyspark's archive if the same pyspark is installed."""
    archive = archive_of_installed()
    if archive is None or os.name != "posix":
        return sys.executable
    home = Path(tempfile.mkdtemp(prefix="ottla-spark-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    program = home / "python"
    program.touch(stat.S_IRWXU)
    # In a directory for temporary files without execute permission, the slower start is used.
    if not os.access(program, os.X_OK):
        return sys.executable
    names = sorted({str(archive), str(archive.resolve())})  # Spark resolves symbolic links in the path
    program.write_text(script(names, start_fork_server(home) if sys.platform == "linux" else None))
    return str(program)


def script(archives: Sequence[str], server: Path | None) -> str:
    """Return the script; workers and their daemons are forked from the server, if there is one."""
    python = shlex.quote(sys.executable)
    worker = python if server is None else shlex.join([sys.executable, "-I", "-S", CLIENT, str(server)])
    return SCRIPT.format(archives=shlex.join(archives), python=python, worker=worker)


def start_fork_server(home: Path) -> Path:
    """Start the fork server and return its address. It imports while Java starts, and ends with this process."""
    place = home / "fork"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place))
        listener.listen(64)
        process = subprocess.Popen(
            [sys.executable, "-m", "ottla.spark.workers.fork_server", str(listener.fileno()), *sorted(loaded_too)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=[listener.fileno()],
            process_group=0,  # Ctrl-C must not interrupt its imports
            # the variables that Spark sets for workers
            env={SEED: "0", "OMP_NUM_THREADS": "1", **os.environ},
        )
    atexit.register(process.communicate)
    return place


def archive_of_installed() -> Path | None:
    """Return the archive in an installed pyspark that is on this Python's import path; None if Spark's home is another."""
    import pyspark

    home = Path(pyspark.__file__).parent
    archive = home / "python" / "lib" / "pyspark.zip"
    configured = os.environ.get("SPARK_HOME")
    is_its_own = configured is None or Path(configured).resolve() == home.resolve()
    return archive if is_its_own and archive.exists() and str(home.parent) in site.getsitepackages() else None
