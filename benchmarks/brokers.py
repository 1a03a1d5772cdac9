"""The brokers that are compared, each in a process of its own with an empty directory."""

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
    """A running broker."""

    name: str
    bootstrap: str
    process: int
    settings: tuple[tuple[str, str], ...] = ()
    """The client settings for this server in addition to the address, by librdkafka's names."""


@contextmanager
def ottla_broker(*settings: str) -> Iterator[Running]:
    """Start `ottla broker` by its command, and wait until it is ready; `settings` have the form `name=value`."""
    with TemporaryDirectory(prefix="ottla-bench-") as folder, started(folder, settings) as (process, line):
        found = ADDRESS.search(line.strip())
        assert found, f"ottla broker said {line!r} where its address was expected"
        yield Running("ottla", found[1], process.pid)


@contextmanager
def started(folder: str, settings: Sequence[str] = ()) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Return the process and the line that it printed when it was ready."""
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
    """Start Apache Kafka. Yields None if its jars have not been fetched."""
    if not rival.fetched():
        yield None
        return
    with rival.apache_kafka() as kafka:
        yield Running("Apache Kafka", kafka.bootstrap_servers, kafka.process)


@contextmanager
def kfake() -> Iterator[Running | None]:
    """Start kfake of franz-go. Yields None if Go is not installed."""
    if not go_rival.can_be_had():
        yield None
        return
    go_rival.fetch()
    with go_rival.kfake() as running:
        yield Running("kfake", running.bootstrap_servers, running.process)


@contextmanager
def everybody(*settings: str) -> Iterator[list[Running]]:
    """Start our broker with `settings`, and the rivals that are available here: Apache Kafka, kfake."""
    with ExitStack() as running:
        found = [running.enter_context(start) for start in (ottla_broker(*settings), apache_kafka(), kfake())]
        yield [server for server in found if server is not None]
