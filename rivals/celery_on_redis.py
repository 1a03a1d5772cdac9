"""Celery on Redis: `redis-server` of the system's package, and Celery in a Python environment of its own in `.cache/celery`."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from ottla.free_ports import free_port
from rivals.one_at_a_time import one_at_a_time
from rivals.python_environment import python_with

PACKAGES = ("celery[redis]==5.7.0", "redis==8.1.0", "packaging")
READY_SECONDS = 20.0
REDIS_SETTINGS = {"save": "", "appendonly": "no", "bind": "127.0.0.1"}
"""Redis writes nothing to the disk, which is its fastest mode."""


class Redis(NamedTuple):
    """A running Redis."""

    url: str
    process: int


def celery_python() -> Path:
    """Return the Python of an environment with Celery; create or update it if necessary."""
    return python_with(PACKAGES, "celery", "Celery")


def redis_server() -> str:
    """Return the path of `redis-server`; install the package if that is possible."""
    found = shutil.which("redis-server")
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        with one_at_a_time(Path("/tmp/ottla-redis")):
            subprocess.run(["apt-get", "install", "-qq", "-y", "redis-server"], check=False, capture_output=True)
        found = shutil.which("redis-server")
    if found is None:
        raise RuntimeError("redis-server was not found: install the package redis-server")
    return found


@contextmanager
def redis() -> Iterator[Redis]:
    """Start a Redis on a free port with an empty directory, and stop it at the end."""
    port = free_port()
    settings = [part for name, value in REDIS_SETTINGS.items() for part in (f"--{name}", value)]
    with TemporaryDirectory(prefix="ottla-redis-") as folder:
        command = [redis_server(), "--port", str(port), "--dir", folder, *settings]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            try:
                wait_until_ready(process, port)
                yield Redis(f"redis://127.0.0.1:{port}/0", process.pid)
            finally:
                process.terminate()


def wait_until_ready(process: subprocess.Popen[bytes], port: int) -> None:
    """Return when Redis accepts connections."""
    deadline = time.monotonic() + READY_SECONDS
    while True:
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"redis-server did not start: status {process.poll()}")
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
