"""Members of groups with our clients, librdkafka and Java.

They read numbers, commit offsets, and record what they read.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import confluent_kafka as ck

from interop.background import Background
from interop.cluster_members import PATIENT
from ottla import Consumer
from ottla.errors import OttlaError
from rivals import apache_kafka as rival

COMMIT_MS = 500


class Reader(Background):
    """The only member of its group."""

    def __init__(self, name: str, topics: Sequence[str], settings: dict[str, Any]) -> None:
        self.name = name
        self.seen: dict[str, list[int]] = {topic: [] for topic in topics}
        """The numbers of each topic, in the order in which they were read."""
        self.failed = ""
        self._settings = settings
        super().__init__()

    @property
    def progress(self) -> int:
        return sum(map(len, self.seen.values()))

    def _run(self) -> None:
        try:
            for topic, value in self._records():
                self.seen[topic].append(int(value))
        except (OttlaError, ck.KafkaException) as error:
            self.failed = f"{type(error).__name__}: {error}"

    def _records(self) -> Iterator[tuple[str, bytes]]:
        raise AssertionError("one of the clients reads")


class OurReader(Reader):
    def _records(self) -> Iterator[tuple[str, bytes]]:
        with Consumer(self._settings | {"metadata.max.age.ms": 500}) as consumer:
            consumer.subscribe(list(self.seen))
            while not self._over.is_set():
                yield from ((each.topic, each.value or b"") for each in consumer.poll(0.2))


class LibrdkafkaReader(Reader):
    def _records(self) -> Iterator[tuple[str, bytes]]:
        consumer = ck.Consumer(self._settings | PATIENT)
        consumer.subscribe(list(self.seen))
        while not self._over.is_set():
            for message in consumer.consume(100, 0.2):
                if message.error() is None:
                    yield message.topic() or "", message.value() or b""
        consumer.close()


class JavaReader(Reader):
    """Kafka's verifiable consumer, which reads one topic."""

    def __init__(self, address: str, topic: str, folder: Path, protocol: str) -> None:
        super().__init__("java-reader", [topic], {})
        settings = folder / "java-reader.properties"
        settings.write_text(rival.render({"metadata.max.age.ms": "500"}))
        where = ("--bootstrap-server", address, "--topic", topic, "--group-id", self.name, "--group-protocol", protocol)
        self._command = rival.java(
            "org.apache.kafka.tools.VerifiableConsumer", *where, "--command-config", str(settings), "--verbose"
        )
        self._command.insert(1, "-Xmx128M")

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        self._process.terminate()  # its output ends, and the thread
        super().__exit__()
        self._process.wait()

    def _records(self) -> Iterator[tuple[str, bytes]]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(b"{") and (answer := json.loads(line))["name"] == "record_data":
                yield answer["topic"], answer["value"].encode()


def readers(address: str, topics: Sequence[str], folder: Path, seed: int) -> list[Reader]:
    """Return a reader of each client for each group protocol. The seed selects the one of Java's reader."""
    java = JavaReader(address, topics[0], folder, ("classic", "consumer")[seed % 2])
    return [
        java,
        *(
            kind(f"{client}-{protocol}", topics, settings_of(address, f"{client}-{protocol}", protocol))
            for client, kind in (("ours", OurReader), ("librdkafka", LibrdkafkaReader))
            for protocol in ("classic", "consumer")
        ),
    ]


def settings_of(address: str, group: str, protocol: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": address,
        "group.id": group,
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": COMMIT_MS,
    }
