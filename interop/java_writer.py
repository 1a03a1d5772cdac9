"""Apache Kafka's verifiable producer. It writes consecutive numbers idempotently and prints the acknowledged ones."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from rivals import apache_kafka as rival
from rivals.kafka_cluster import PATIENCE, wait_for

PER_SECOND = 100
SETTINGS = {
    "enable.idempotence": "true",
    "retries": str(2**31 - 1),  # the tool has none unless one is set
    "delivery.timeout.ms": "120000",
    "metadata.max.age.ms": "500",
}


class JavaWriter:
    """Writes to all partitions of a topic inside a `with` block."""

    def __init__(self, address: str, topic: str, folder: Path, **more: object) -> None:
        self._said = folder / "java-writer"
        settings = folder / "java-writer.properties"
        given = {name.replace("_", "."): str(value) for name, value in more.items()}
        settings.write_text(rival.render(SETTINGS | given))
        where = ("--bootstrap-server", address, "--topic", topic, "--command-config", str(settings))
        self._command = rival.java(
            "org.apache.kafka.tools.VerifiableProducer", *where, "--throughput", str(PER_SECOND), "--acks", "-1"
        )
        self._command.insert(1, "-Xmx128M")

    def __enter__(self) -> JavaWriter:
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(self._command, stdout=said, stderr=said)
        self.go_on()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._process.terminate()  # it delivers the records in flight
            self._process.wait(PATIENCE)
        finally:
            self._process.kill()
            self._process.wait()

    @property
    def count(self) -> int:
        """The number of acknowledged records."""
        return self._said.read_bytes().count(b"producer_send_success")

    def go_on(self, count: int = 50) -> None:
        """Wait until `count` more records are acknowledged."""
        enough = self.count + count
        wait_for(lambda: self.count >= enough, self._said.read_text()[-2000:])

    def list_events(self, name: str) -> list[tuple[int, int, int]]:
        """Return partition, offset and number of each record in events of this name.

        Failed records have -1 for both.
        """
        lines = [line for line in self._said.read_text().splitlines() if f'"name":"{name}"' in line and line[-1] == "}"]
        records = map(json.loads, lines)
        return [(each.get("partition", -1), each.get("offset", -1), int(each["value"])) for each in records]
