"""A Python that has loaded what Spark's workers need, and becomes them, and the daemons of others, by a fork.

    Spark ──► fork_client ──arguments, environment, stdin, stdout, stderr──► fork_server ──fork──► worker_daemon, source runner …

Spark starts a process for each thing that it asks of Python, some six in a query's first seconds, and each would load pyspark, pandas,
pyarrow and Ottla anew: one to two seconds of a core. Here they are loaded once, while Java starts, and what its arguments name. The server ends when the
process that started it does; what it has become ends as ever, when Spark closes its stdin or its socket.

The rule: nothing that is loaded here has a thread, but those of numpy's and pyarrow's libraries, which are made for forks; and what a fork would
give to all alike (numpy's chance) is made anew after it.
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
"""Bytes that tell how long a request is."""
PATIENCE = 10.0


class Request(NamedTuple):
    """What is to be started."""

    arguments: list[str]
    environment: dict[str, str]
    folder: str


class Child(NamedTuple):
    """What the server has become, and the client that stands for it in Spark's eyes."""

    pid: int
    client: socket.socket


class ForkServer:
    """Takes requests until its stdin is closed."""

    def __init__(self, listener: socket.socket, paths: list[str]) -> None:
        self.listener = listener
        self.paths = paths
        """Where to import from after what PYTHONPATH says."""
        self.children: dict[int, Child] = {}

    def serve(self) -> None:
        """Until whoever started this has ended."""
        news, told = os.pipe()
        os.set_blocking(told, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(told, warn_on_full_buffer=False)
        while True:
            ready, _, _ = select.select([0, news, self.listener.fileno(), *self.children], [], [])
            if 0 in ready:
                return
            if news in ready:
                os.read(news, 4096)
                self.reap()
            if self.listener.fileno() in ready:
                self.accept()
            for number in self.children.keys() & set(ready):
                self.end(self.children.pop(number))

    def accept(self) -> None:
        """Have a new process do what is asked; a client that is sent away, or that nobody answers, starts a Python itself."""
        client, _ = self.listener.accept()
        fds: list[int] = []
        try:
            client.settimeout(PATIENCE)
            request, fds = receive(client)
            if not fits(request.environment, os.environ):
                client.close()
                return
            pid = forked()
            if not pid:
                self.become(request, fds, client)
            client.sendall(b"+")
            self.children[client.fileno()] = Child(pid, client)
        except (OSError, ValueError, EOFError):
            client.close()
        finally:
            for fd in fds:
                os.close(fd)

    def become(self, request: Request, fds: list[int], client: socket.socket) -> NoReturn:
        """Be what was asked for, to its end."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for one in (self.listener, client, *(child.client for child in self.children.values())):
                one.close()
            for number, fd in enumerate(fds):
                os.dup2(fd, number)
                os.close(fd)
            dress(request, self.paths)
            name = sys.argv[0]
            sys.modules.pop(name, None)  # it is run under another name
            runpy.run_module(name, run_name="__main__", alter_sys=True)
            code = 0
        except SystemExit as ending:
            code = ending.code if isinstance(ending.code, int) else 1
        finally:
            os._exit(code)

    def reap(self) -> None:
        """Take note of those that have ended, and tell their clients."""
        for pid, code in ended():
            child = next((one for one in self.children.values() if one.pid == pid), None)
            if child is not None:
                del self.children[child.client.fileno()]
                with suppress(OSError):
                    child.client.sendall(bytes([code & 0xFF]))
                child.client.close()

    def end(self, child: Child) -> None:
        """Spark has ended the client: it means this one."""
        child.client.close()
        with suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGTERM)


def ended() -> Iterator[tuple[int, int]]:
    """The processes that have ended, with their codes."""
    with suppress(ChildProcessError):
        while (one := os.waitpid(-1, os.WNOHANG))[0]:
            yield one[0], os.waitstatus_to_exitcode(one[1])


def receive(client: socket.socket) -> tuple[Request, list[int]]:
    """What the client sends, with its stdin, stdout and stderr."""
    data, fds, _, _ = socket.recv_fds(client, LENGTH, 3)
    while len(data) < LENGTH or len(data) < LENGTH + int.from_bytes(data[:LENGTH], "big"):
        more = client.recv(1 << 16)
        if not more:
            raise EOFError
        data += more
    return Request(*marshal.loads(data[LENGTH:])), fds


def fits(wanted: Mapping[str, str], own: Mapping[str, str]) -> bool:
    """Whether what was decided when this Python began is as wanted: the order of its sets."""
    return wanted.get(SEED, own.get(SEED)) == own.get(SEED)


def dress(request: Request, paths: list[str]) -> None:
    """Take the arguments, the environment and the folder of a process that was begun anew."""
    os.environ.clear()
    os.environ.update(request.environment)
    with suppress(OSError):
        os.chdir(request.folder)
    first = [] if sys.flags.safe_path else [request.folder]
    sys.path[:] = [*first, *asked_paths(request.environment), *paths]
    sys.argv = request.arguments
    importlib.invalidate_caches()


def forked() -> int:
    """As `os.fork`, which since Python 3.12 warns of every thread: those of numpy's and pyarrow's libraries too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def asked_paths(environment: Mapping[str, str]) -> list[str]:
    """Where PYTHONPATH says to import from."""
    return [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who started this
    asked = {os.path.abspath(path) for path in asked_paths(os.environ)}
    begin = 0 if sys.flags.safe_path else 1
    paths = [path for path in sys.path[begin:] if os.path.abspath(path) not in asked]
    for name in (*LOADED, *sys.argv[2:]):
        with suppress(Exception):  # another Spark has it elsewhere; who needs what cannot be loaded says so
            importlib.import_module(name)
    gc.collect()
    gc.freeze()
    ForkServer(socket.socket(fileno=int(sys.argv[1])), paths).serve()


if __name__ == "__main__":
    main()
