"""A Kafka Connect worker, started from Apache Kafka's jars, with its file connector and Debezium's sink of tables."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from ottla.free_ports import free_port
from rivals.apache_kafka import ROOT, bring, render, stop
from rivals.one_at_a_time import one_at_a_time

JARS = ROOT / ".cache" / "kafka-connect"
POM = Path(__file__).with_name("kafka-connect.xml")
NEEDED = ("connect-runtime-*.jar", "debezium-connector-jdbc-*.jar")
READY_SECONDS = 90.0
STRING = "org.apache.kafka.connect.storage.StringConverter"


def fetch() -> None:
    """Download the jars unless they exist."""
    with one_at_a_time(JARS):
        if not all(any(JARS.glob(pattern)) for pattern in NEEDED):
            bring(POM, JARS)


class KafkaConnect:
    """A running worker."""

    def __init__(self, process: int, address: str) -> None:
        self.process, self.address = process, address

    def start(self, name: str, **config: Any) -> None:
        """Start a connector; its options have `_` for each dot, and `__` for each `_`."""
        told = {
            key.replace("__", "\0").replace("_", ".").replace("\0", "_"): str(value) for key, value in config.items()
        }
        self._ask("PUT", f"/connectors/{name}/config", told)

    def delete(self, name: str) -> None:
        self._ask("DELETE", f"/connectors/{name}")

    def check(self, name: str) -> None:
        """Raise RuntimeError with the trace of a failed task."""
        for task in json.loads(self._ask("GET", f"/connectors/{name}/status"))["tasks"]:
            if task["state"] == "FAILED":
                raise RuntimeError(task["trace"])

    def _ask(self, method: str, path: str, body: Any = None) -> bytes:
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"{self.address}{path}", data, {"Content-Type": "application/json"}, method=method)
        try:
            with urlopen(request, timeout=60) as answer:
                return bytes(answer.read())
        except HTTPError as error:
            raise RuntimeError(f"{method} {path}: {error.read().decode()}") from None


@contextmanager
def kafka_connect(servers: str, **settings: str) -> Iterator[KafkaConnect]:
    """Run a worker of these brokers; it is stopped at the end."""
    fetch()
    with TemporaryDirectory(prefix="kafka-connect-") as place:
        folder = Path(place)
        port = free_port()
        known = {
            "bootstrap.servers": servers,
            "key.converter": STRING,
            "value.converter": STRING,
            "offset.storage.file.filename": str(folder / "offsets"),
            "listeners": f"http://127.0.0.1:{port}",
            "plugin.discovery": "service_load",  # all are on the class path
            **settings,
        }
        (folder / "worker.properties").write_text(render(known))
        command = ["java", "-Xmx1G", "-cp", f"{JARS}/*", "org.apache.kafka.connect.cli.ConnectStandalone"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [*command, str(folder / "worker.properties")], stdout=log, stderr=log, cwd=folder
            )
        try:
            address = f"http://127.0.0.1:{port}"
            wait_for(address, process, folder / "log")
            yield KafkaConnect(process.pid, address)
        finally:
            stop(process)


def wait_for(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Return once the worker answers."""
    deadline = time.monotonic() + READY_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urlopen(f"{address}/connectors", timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.2)
    raise RuntimeError(f"Kafka Connect did not start:\n{log.read_text(errors='replace')[-3000:]}")
