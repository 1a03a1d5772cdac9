"""Kafka Streams with `group.protocol=streams` on our broker: exact counts although an instance is killed (KIP-1071)."""

from __future__ import annotations

import signal
import struct
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from interop.java_programs import HERE
from ottla import Admin, Broker, Consumer, NewTopic, Producer
from rivals import apache_kafka as rival
from tests.patience import eventually

FAST: dict[str, Any] = {
    "group_streams_initial_rebalance_delay_ms": 0,
    "group_streams_heartbeat_interval_ms": 500,
    "group_streams_min_heartbeat_interval_ms": 500,
    "group_streams_session_timeout_ms": 6000,
    "group_streams_min_session_timeout_ms": 6000,
}
WORDS = [f"w{number % 17}" for number in range(20_000)]
LINE = 5
"""The number of words in a record."""
PATIENCE = 180.0


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the class path of the compiled application."""
    jars, folder = rival.fetch_streams(), tmp_path_factory.mktemp("classes")
    compiler = [
        "java",
        *rival.options,
        "-m",
        "jdk.compiler/com.sun.tools.javac.Main",
        "-cp",
        ":".join(map(str, jars.glob("*.jar"))),
    ]
    rival.run([*compiler, "-d", str(folder), str(HERE / "java" / "WordCount.java")])
    return f"{jars}/*:{folder}"


@contextmanager
def instance(classes: str, address: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run an instance of the word count, with its own state directory."""
    folder.mkdir()
    words = ["WordCount", address, "count", "lines", "totals", str(folder / "state")]
    with Path(folder, "out").open("wb") as out:
        process = subprocess.Popen(
            ["java", *rival.options, "-Xmx256m", "-cp", classes, *words], stdout=out, stderr=subprocess.STDOUT
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def test_counts_are_exact_although_an_instance_is_killed(classes: str, tmp_path: Path) -> None:
    with Broker(tmp_path / "data", process=True, **FAST) as broker:
        address = broker.bootstrap_servers
        with Admin(bootstrap_servers=address) as admin:
            admin.create_topics([NewTopic("lines", 4), NewTopic("totals", 2)])
        with (
            instance(classes, address, tmp_path / "first") as first,
            instance(classes, address, tmp_path / "second"),
            Producer(bootstrap_servers=address) as producer,
            Consumer(bootstrap_servers=address, auto_offset_reset="earliest", isolation_level="read_committed", group_id="reader") as consumer,
        ):  # fmt: skip
            consumer.subscribe(["totals"])
            totals: dict[str, int] = {}
            send(producer, WORDS[: len(WORDS) // 2])
            read_until(consumer, totals, Counter(WORDS[: len(WORDS) // 2]))
            first.send_signal(signal.SIGKILL)
            send(producer, WORDS[len(WORDS) // 2 :])
            read_until(consumer, totals, Counter(WORDS))


def send(producer: Producer, words: list[str]) -> None:
    for start in range(0, len(words), LINE):
        producer.send("lines", key=str(start).encode(), value=" ".join(words[start : start + LINE]).encode())
    producer.flush()


def read_until(consumer: Consumer, totals: dict[str, int], expected: Counter[str]) -> None:
    """Read totals until they are those of all words. No total may ever decrease or be repeated."""

    def is_complete() -> bool:
        for record in consumer.poll(0.2):
            assert record.key is not None
            assert record.value is not None
            word, (total,) = bytes(record.key).decode(), struct.unpack(">q", record.value)
            assert total > totals.get(word, 0)
            totals[word] = total
        return totals == expected

    eventually(is_complete, PATIENCE)
