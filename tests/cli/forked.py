"""A process that has imported the modules of the commands and forks for each command: imports take most of a command's time.

The fork has its own streams, folder, environment and exit status, like a new process. A command that is to
be interrupted, killed or inspected while it runs needs a new process: `start` in `conftest.py`.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import IO, NamedTuple

LOADED = (
    *(
        "ottla.broker.embedding.broker_process",
        "ottla.cli.broker",
        "ottla.cli.records.consume",
        "ottla.cli.groups.groups",
        "ottla.cli.storage.log",
    ),
    *("ottla.cli.records.produce", "ottla.cli.storage.storage", "ottla.cli.topics", "ottla.client.admin"),
)
"""Their dependencies are imported too. None of these modules starts a thread."""


class Ended(NamedTuple):
    """The result of a command; the status is negative if a signal ended it."""

    status: int
    out: str
    err: str


class Forks:
    """The parent's handle of such a process."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._socket, theirs = socket.socketpair()
        command = [sys.executable, "-W", "error", "-m", "tests.cli.forked", str(theirs.fileno())]
        with theirs:
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=environment)

    def run(self, arguments: Sequence[str], stdin: bytes, environment: Mapping[str, str], seconds: float) -> Ended:
        """Run `ottla …` to its end; it is killed after so many seconds."""
        asked = json.dumps([list(arguments), os.getcwd(), dict(environment)]).encode()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            reading, writing = os.pipe()
            socket.send_fds(self._socket, [number(len(asked))], [reading, out.fileno(), err.fileno()])
            os.close(reading)
            self._socket.sendall(asked)
            pid = received(self._socket)
            with suppress(BrokenPipeError), open(writing, "wb") as pipe:
                pipe.write(stdin)
            return Ended(self._status(pid, seconds), whole(out), whole(err))

    def _status(self, pid: int, seconds: float) -> int:
        self._socket.settimeout(seconds)
        try:
            return received(self._socket)
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            return received(self._socket)
        finally:
            self._socket.settimeout(None)

    def close(self) -> None:
        self._socket.close()
        self._process.wait()


@cache
def forks() -> Forks:
    """Return the server of this process."""
    made = Forks({**os.environ, "PYTHONUNBUFFERED": ""})
    atexit.register(made.close)
    return made


def serve(sock: socket.socket) -> int:
    """Return in each fork with the command's status, and in this process after the socket is closed."""
    for name in LOADED:
        import_module(name)
    gc.freeze()  # nor has a fork to look through all that
    while True:
        size, streams, *_ = socket.recv_fds(sock, 4, 3)
        if not size:
            return 0
        arguments, folder, environment = json.loads(sock.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL))
        pid = os.fork()
        if pid == 0:
            sock.close()
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(environment)
            return run(arguments, streams)
        for stream in streams:
            os.close(stream)
        sock.sendall(number(pid))
        sock.sendall(number(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))


def run(arguments: Sequence[str], streams: Sequence[int]) -> int:
    """The command itself."""
    from ottla.cli.main import main

    for place, stream in enumerate(streams):
        os.dup2(stream, place)
        os.close(stream)
    return main(arguments)


def number(value: int) -> bytes:
    return value.to_bytes(4, "big", signed=True)


def received(sock: socket.socket) -> int:
    return int.from_bytes(sock.recv(4, socket.MSG_WAITALL), "big", signed=True)


def whole(file: IO[bytes]) -> str:
    """Return the complete content of a file that other processes have written."""
    file.seek(0)
    return file.read().decode()


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as asked_here:
        ended = serve(asked_here)
    sys.exit(ended)
