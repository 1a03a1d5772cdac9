"""A Python process that has imported the modules of Spark's workers, and creates workers and their daemons by fork.

    Spark ──► fork_client ──arguments, environment, stdin, stdout, stderr──► fork_server ──fork──► worker_daemon, source runner …

Spark starts a process for each kind of call to Python, about six in a query's first seconds. Each would import pyspark,
pandas, pyarrow and Ottla again, which takes one to two seconds of a core. Here they are imported once, while Java
starts, together with the modules in its arguments. The server ends when the process that started it ends. The created
processes end as usual, when Spark closes their stdin or socket.

The imported modules must not start threads, except those of numpy's and pyarrow's libraries, which support forks. State
that a fork would duplicate (numpy's random generator) is initialized again after the fork.
"""

from __future__ import annotations

import gc
import importlib
import marshal
import os
import runpy
import select
import signal
import socket
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple, NoReturn

LOADED = (
    "numpy.random",
    "pandas",
    "pyarrow",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.worker.commit_data_source_write",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.python_streaming_sink_runner",
    "pyspark.sql.worker.write_into_data_source",
    "pyspark.worker",
    "ottla.spark.sink.writers",
    "ottla.spark.data_source",
    "ottla.spark.workers.worker_daemon",
)
SEED = "PYTHONHASHSEED"
LENGTH = 8
"""Bytes of the length of a request."""
PATIENCE = 10.0


class Request(NamedTuple):
    """The arguments, environment and folder that Spark gave `fork_client`."""

    arguments: list[str]
    environment: dict[str, str]
    folder: str


class Child(NamedTuple):
    """A process that the server created, and the client that Spark knows in its place."""

    pid: int
    client: socket.socket


class ForkServer:
    """Serves requests until its stdin is closed."""

    def __init__(self, listener: socket.socket, paths: list[str]) -> None:
        self.listener = listener
        self.paths = paths
        """The import paths after those of PYTHONPATH."""
        self.children: dict[int, Child] = {}

    def serve(self) -> None:
        """Serve until the process that started the server ends."""
        wakeup, signals = os.pipe()
        os.set_blocking(signals, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(signals, warn_on_full_buffer=False)
        while True:
            ready, _, _ = select.select([0, wakeup, self.listener.fileno(), *self.children], [], [])
            if 0 in ready:
                return
            if wakeup in ready:
                os.read(wakeup, 4096)
                self.report_ended()
            if self.listener.fileno() in ready:
                self.accept()
            for number in self.children.keys() & set(ready):
                self.terminate_child(self.children.pop(number))

    def accept(self) -> None:
        """Create the process of a request. If the request is rejected or fails, the client starts a Python itself."""
        client, _ = self.listener.accept()
        fds: list[int] = []
        try:
            client.settimeout(PATIENCE)
            request, fds = receive_request(client)
            if not has_same_hash_seed(request.environment, os.environ):
                client.close()
                return
            pid = fork()
            if not pid:
                self.run_request(request, fds, client)
            client.sendall(b"+")
            self.children[client.fileno()] = Child(pid, client)
        except (OSError, ValueError, EOFError):
            client.close()
        finally:
            for fd in fds:
                os.close(fd)

    def run_request(self, request: Request, fds: list[int], client: socket.socket) -> NoReturn:
        """Run the requested module, in the created process."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for one in (self.listener, client, *(child.client for child in self.children.values())):
                one.close()
            for number, fd in enumerate(fds):
                os.dup2(fd, number)
                os.close(fd)
            apply_request(request, self.paths)
            name = sys.argv[0]
            sys.modules.pop(name, None)  # it runs as __main__
            runpy.run_module(name, run_name="__main__", alter_sys=True)
            code = 0
        except SystemExit as ending:
            code = ending.code if isinstance(ending.code, int) else 1
        finally:
            os._exit(code)

    def report_ended(self) -> None:
        """Report ended processes to their clients."""
        for pid, code in iter_ended():
            child = next((one for one in self.children.values() if one.pid == pid), None)
            if child is not None:
                del self.children[child.client.fileno()]
                with suppress(OSError):
                    child.client.sendall(bytes([code & 0xFF]))
                child.client.close()

    def terminate_child(self, child: Child) -> None:
        """Terminate a process after Spark has terminated its client."""
        child.client.close()
        with suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGTERM)


def iter_ended() -> Iterator[tuple[int, int]]:
    """Yield the ended processes with their exit codes."""
    with suppress(ChildProcessError):
        while (one := os.waitpid(-1, os.WNOHANG))[0]:
            yield one[0], os.waitstatus_to_exitcode(one[1])


def receive_request(client: socket.socket) -> tuple[Request, list[int]]:
    """Return the client's request, with its stdin, stdout and stderr."""
    data, fds, _, _ = socket.recv_fds(client, LENGTH, 3)
    while len(data) < LENGTH or len(data) < LENGTH + int.from_bytes(data[:LENGTH], "big"):
        more = client.recv(1 << 16)
        if not more:
            raise EOFError
        data += more
    return Request(*marshal.loads(data[LENGTH:])), fds


def has_same_hash_seed(wanted: Mapping[str, str], own: Mapping[str, str]) -> bool:
    """Return True if this Python was started with the requested hash seed, which determines the order of sets."""
    return wanted.get(SEED, own.get(SEED)) == own.get(SEED)


def apply_request(request: Request, paths: list[str]) -> None:
    """Set the arguments, environment and folder of a newly started process."""
    os.environ.clear()
    os.environ.update(request.environment)
    with suppress(OSError):
        os.chdir(request.folder)
    first = [] if sys.flags.safe_path else [request.folder]
    sys.path[:] = [*first, *python_paths(request.environment), *paths]
    sys.argv = request.arguments
    importlib.invalidate_caches()


def fork() -> int:
    """Return the result of `os.fork` without its warning: since Python 3.12 it warns of all threads, including those of numpy and pyarrow."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def python_paths(environment: Mapping[str, str]) -> list[str]:
    """Return the import paths in PYTHONPATH."""
    return [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the parent process
    asked = {os.path.abspath(path) for path in python_paths(os.environ)}
    begin = 0 if sys.flags.safe_path else 1
    paths = [path for path in sys.path[begin:] if os.path.abspath(path) not in asked]
    for name in (*LOADED, *sys.argv[2:]):
        with suppress(Exception):  # modules differ between versions of Spark; a worker reports a missing module itself
            importlib.import_module(name)
    gc.collect()
    gc.freeze()
    ForkServer(socket.socket(fileno=int(sys.argv[1])), paths).serve()


if __name__ == "__main__":
    main()
