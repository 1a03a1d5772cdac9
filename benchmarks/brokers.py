"""The brokers that race, each in a process of its own with an empty directory."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from tempfile import TemporaryDirectory
from typing import NamedTuple

from rivals import apache_kafka as rival
from rivals import kfake as go_rival

ADDRESS = re.compile(r"(\d+\.\d+\.\d+\.\d+:\d+)$")


class Running(NamedTuple):
    """A broker that answers."""

    name: str
    bootstrap: str
    process: int
    settings: tuple[tuple[str, str], ...] = ()
    """What a client needs beside the address, by librdkafka's names."""


@contextmanager
def ottla_broker(*settings: str) -> Iterator[Running]:
    """`ottla broker` as a person starts it, ready; `settings` are of the kind `name=value`."""
    with TemporaryDirectory(prefix="ottla-bench-") as folder, started(folder, settings) as (process, line):
        found = ADDRESS.search(line.strip())
        assert found, f"ottla broker said {line!r} where its address was expected"
        yield Running("ottla", found[1], process.pid)


@contextmanager
def started(folder: str, settings: Sequence[str] = ()) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and the line that it printed when it was ready."""
    command = [sys.executable, "-m", "ottla.cli.main", "broker", "--listen", "127.0.0.1:0", "--data-dir", folder]
    command += [word for setting in settings for word in ("--set", setting)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline()
        finally:
            process.terminate()


@contextmanager
def apache_kafka() -> Iterator[Running | None]:
    """Apache Kafka, or None where its jars have not been fetched."""
    if not rival.fetched():
        yield None
        return
    with rival.apache_kafka() as kafka:
        yield Running("Apache Kafka", kafka.bootstrap_servers, kafka.process)


@contextmanager
def kfake() -> Iterator[Running | None]:
    """Franz-go's kfake, or None where there is no Go to compile it."""
    if not go_rival.can_be_had():
        yield None
        return
    go_rival.fetch()
    with go_rival.kfake() as running:
        yield Running("kfake", running.bootstrap_servers, running.process)


@contextmanager
def everybody(*settings: str) -> Iterator[list[Running]]:
    """Ours, begun with `settings`, and those of its rivals that can be had here: Apache Kafka, kfake."""
    with ExitStack() as running:
        found = [running.enter_context(start) for start in (ottla_broker(*settings), apache_kafka(), kfake())]
        yield [server for server in found if server is not None]
