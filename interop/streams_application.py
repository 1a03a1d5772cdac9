"""A word count of Kafka Streams with `group.protocol=streams`, exactly once: its instances, its input and its totals."""

from __future__ import annotations

import functools
import hashlib
import struct
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from interop.java_programs import HERE
from ottla import Consumer, Producer
from rivals import apache_kafka as rival
from rivals.one_at_a_time import one_at_a_time
from tests.patience import eventually

LINES, TOTALS = "lines", "totals"
"""The topics that the application reads and writes."""
GROUP = "count"
LINE = 5
"""The number of words in a record."""
PATIENCE = 180.0
SOURCE = HERE / "java" / "WordCount.java"


@functools.cache
def class_path() -> str:
    """Return the class path of the compiled application."""
    jars = rival.fetch_streams()
    folder = rival.ROOT / "out" / f"streams-{hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]}"
    with one_at_a_time(folder):
        if not folder.exists():
            part = folder.with_suffix(".part")
            path = ":".join(map(str, jars.glob("*.jar")))
            compiler = ["java", *rival.options, "-m", "jdk.compiler/com.sun.tools.javac.Main", "-cp", path]
            rival.run([*compiler, "-d", str(part), str(SOURCE)])
            part.rename(folder)
    return f"{jars}/*:{folder}"


@contextmanager
def instance(servers: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run an instance of the word count, with its own state directory. Its output is in the file `out`."""
    folder.mkdir(exist_ok=True)
    words = ["WordCount", servers, GROUP, LINES, TOTALS, str(folder / "state")]
    with Path(folder, "out").open("ab") as out:
        process = subprocess.Popen(
            ["java", *rival.options, "-Xmx256m", "-cp", class_path(), *words], stdout=out, stderr=subprocess.STDOUT
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def send_words(producer: Producer, words: Sequence[str]) -> None:
    """Write words to the application's input, some in each record, and wait until they are acknowledged."""
    sent = [
        producer.send(LINES, key=str(start).encode(), value=" ".join(words[start : start + LINE]).encode())
        for start in range(0, len(words), LINE)
    ]
    for each in sent:
        each.result(PATIENCE)


def read_totals(consumer: Consumer, totals: dict[str, int], expected: Mapping[str, int]) -> None:
    """Read totals until they are the expected ones. No total may ever decrease or be repeated."""

    def is_complete() -> bool:
        for record in consumer.poll(0.2):
            assert record.key is not None
            assert record.value is not None
            word, (total,) = bytes(record.key).decode(), struct.unpack(">q", record.value)
            assert total > totals.get(word, 0)
            totals[word] = total
        return totals == expected

    eventually(is_complete, PATIENCE)
