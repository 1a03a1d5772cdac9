"""The clients of a run: idempotent and transactional producers of three clients, and groups of both protocols."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from interop.java_transactor import JavaTransactor
from interop.java_writer import JavaWriter
from interop.splits.history import History
from interop.splits.lives import Lives
from interop.splits.our_writers import OurTransactor, OurWriter
from interop.splits.readers import readers
from interop.transactor import Transactor
from interop.writer import Writer

LED = (1, 2, 3)
"""Each of these brokers leads one topic of each writer."""
PACE_SECONDS = 0.03
STEADY, JAVA = ("librdkafka", "ours"), "java"
TRANSACTIONAL = ("librdkafka-tx", "ours-tx", "java-tx", "java-restarted")


def topics_of(name: str) -> list[str]:
    return [f"{name}-{node}" for node in LED]


class SteadyWriter:
    """An idempotent writer, with acknowledgements by partition."""

    isolation = "read_uncommitted"
    aborted: Sequence[str] = ()

    def __init__(self, name: str, writer: Writer | OurWriter) -> None:
        self.name = name
        self.places = [f"{topic}-0" for topic in writer.delivered]
        self.writer = writer

    @property
    def progress(self) -> int:
        return min(map(len, self.writer.delivered.values()))

    @property
    def failures(self) -> int:
        return len(self.writer.failed)

    def acknowledged(self, place: str) -> set[int]:
        return set(self.writer.delivered[place.rpartition("-")[0]])


class JavaSteady:
    """Java's idempotent writer, with one topic of three partitions."""

    isolation = "read_uncommitted"
    aborted: Sequence[str] = ()
    name = JAVA

    def __init__(self, writer: JavaWriter) -> None:
        self.writer = writer
        self.places = [f"{JAVA}-{partition}" for partition in range(len(LED))]

    @property
    def progress(self) -> int:
        return self.writer.count

    @property
    def failures(self) -> int:
        return len(self.writer.list_events("producer_send_error"))

    def acknowledged(self, place: str) -> set[int]:
        reported = self.writer.list_events("producer_send_success")
        return {number for partition, _, number in reported if f"{JAVA}-{partition}" == place}


class Crowd:
    """Twelve clients that work inside a `with` block."""

    def __init__(self, address: str, folder: Path, history: History, seed: int) -> None:
        self._chance = random.Random(seed)
        self._history = history
        self.steady = [
            SteadyWriter(
                "librdkafka",
                Writer(address, topics_of("librdkafka"), pace_seconds=PACE_SECONDS, message_timeout_ms=240_000),
            ),
            SteadyWriter("ours", OurWriter(address, topics_of("ours"), PACE_SECONDS)),
        ]
        self.java = JavaSteady(JavaWriter(address, JAVA, folder, delivery_timeout_ms=240_000))

        def librdkafka(first: int) -> Transactor:
            spans = {"transaction_timeout_ms": 120_000, "message_timeout_ms": 120_000}
            return Transactor(address, topics_of("librdkafka-tx"), "librdkafka-tx", first, **spans)

        def ours(first: int) -> OurTransactor:
            return OurTransactor(address, topics_of("ours-tx"), "ours-tx", first)

        self.lives = [
            Lives("librdkafka-tx", topics_of("librdkafka-tx"), librdkafka, history),
            Lives("ours-tx", topics_of("ours-tx"), ours, history),
            *(
                Lives(
                    name,
                    topics_of(name),
                    lambda first, name=name: JavaTransactor(address, topics_of(name), name, folder, first),  # type: ignore[misc]
                    history,
                )
                for name in ("java-tx", "java-restarted")
            ),
        ]
        self.readers = readers(address, topics_of("librdkafka"), folder, seed)
        self._reading, self._writing = ExitStack(), ExitStack()

    @property
    def writers(self) -> list[SteadyWriter | JavaSteady | Lives]:
        return [*self.steady, self.java, *self.lives]

    def begin(self) -> None:
        for reader in self.readers:
            self._reading.enter_context(reader)
        for each in (*(each.writer for each in self.steady), self.java.writer, *self.lives):
            self._writing.enter_context(each)

    def end_writing(self) -> None:
        self._writing.close()

    def end_reading(self) -> None:
        self._reading.close()

    def tend(self) -> None:
        for each in self.lives:
            each.tend()

    def restart_somebody(self) -> None:
        """Restart Java's second producer: kill it, or fence it by a successor while it writes.

        At random, do nothing.
        """
        restarted = self.lives[-1]
        what: Callable[[], None] | None = self._chance.choice([restarted.kill, restarted.take_over, None])
        if what is not None:
            what()

    def progress(self) -> dict[str, int]:
        return {each.name: each.progress for each in (*self.writers, *self.readers)}

    def failures(self) -> dict[str, int | str]:
        """Return the number of failures by client. Some are expected: a transaction that lasts too long is aborted."""
        found: dict[str, int | str] = {each.name: each.failures for each in self.writers}
        found |= {each.name: each.failed for each in self.readers}
        return {name: what for name, what in found.items() if what}
