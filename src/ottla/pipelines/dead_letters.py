"""Rows that cannot be read or written, and the dead-letter topic that receives them.

A row of a table, of a change or of a web answer is not a record of a topic. Its dead letter has the row as JSON, with
the headers of Kafka Connect that describe the cause (KIP-298).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ottla.errors import OttlaError, RecordTooLargeError
from ottla.spark.sink.dead_letters import PREFIX, STAGE

POLL = "TASK_POLL"
"""The name of the stage, in Kafka Connect, of rows that a source cannot read."""
REMEDY = "set errors: {tolerance: all, deadLetterTopic: …}, which puts such rows aside"
LONGEST_CAUSE = 2000
"""Characters kept of a cause, which in errors of databases may repeat a value."""
CUT_BYTES = 100_000
"""Bytes kept of a row that is too large for its topic."""


class BadRowError(OttlaError):
    """A row cannot be read or written."""


class RefusedBatchError(BadRowError):
    """A batch cannot be written because of one of its rows.

    A retry fails too: Spark writes the same batch again at each start.
    """


class BadRow(NamedTuple):
    """A row and the cause."""

    values: Mapping[str, Any]
    cause: str


@dataclass(frozen=True)
class DeadLetterTopic:
    """The topic that receives the bad rows of a pipeline."""

    topic: str
    pipeline: str
    settings: Mapping[str, str]
    """The settings of the producer."""

    def send(self, rows: Sequence[BadRow], stage: str = STAGE) -> None:
        """Write all rows, and return when the brokers have acknowledged them.

        A row that is too large is cut to `CUT_BYTES`.
        """
        from ottla.client.producer import Producer

        with Producer({**self.settings, "acks": "all"}) as producer:
            sent, too_large = [], []
            for row in rows:
                try:
                    sent.append(
                        (row, producer.send(self.topic, value_of(row.values), headers=self.headers(row, stage)))
                    )
                except RecordTooLargeError:
                    too_large.append(row)
            producer.flush()
            for row, result in sent:
                try:
                    result.result()
                except RecordTooLargeError:
                    too_large.append(row)
            for row in too_large:
                data = value_of(row.values)
                cut = BadRow(row.values, f"{row.cause[: LONGEST_CAUSE // 2]} (cut here from {len(data):,} bytes)")
                producer.send(self.topic, data[:CUT_BYTES], headers=self.headers(cut, stage)).result()

    def headers(self, row: BadRow, stage: str) -> list[tuple[str, bytes | None]]:
        """Return Kafka Connect's headers for the cause. The topic is empty, because the row is not a record."""
        cause = row.cause if len(row.cause) <= LONGEST_CAUSE else f"{row.cause[:LONGEST_CAUSE]}…"
        known = {"topic": "", "connector.name": self.pipeline, "stage": stage, "exception.message": cause}
        return [(PREFIX + name, text.encode(errors="replace")) for name, text in known.items()]


class BadRows:
    """The rows of one fetch of a source that cannot be read."""

    def __init__(self, dead_letters: DeadLetterTopic | None) -> None:
        self.dead_letters = dead_letters
        self.count = 0
        """Rows put aside so far."""
        self._held: list[BadRow] = []

    def clear(self) -> None:
        """Drop the rows of a fetch that failed."""
        self._held.clear()

    def add(self, where: str, row: BadRow, remedy: str) -> None:
        """Keep a row for `send`; BadRowError if there is no dead-letter topic."""
        if self.dead_letters is None:
            raise BadRowError(f"{where}: {row.cause}; {remedy}, or {REMEDY}")
        self._held.append(BadRow(row.values, f"{where}: {row.cause}"))

    def send(self) -> None:
        """Write the rows of this fetch to the dead-letter topic."""
        if self.dead_letters is not None and self._held:
            self.dead_letters.send(self._held, POLL)
            self.count += len(self._held)
            self._held.clear()


def value_of(values: Mapping[str, Any]) -> bytes:
    """Return a row as JSON; numbers that JSON does not have become text."""
    return json.dumps(replace_non_finite(values), default=text_of).encode()


def replace_non_finite(value: Any) -> Any:
    """Return a value with NaN and infinity as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): replace_non_finite(one) for name, one in value.items()}
    return [replace_non_finite(one) for one in value] if isinstance(value, list | tuple) else value


def text_of(value: Any) -> str:
    """Return a value for which JSON has no type."""
    return value.hex() if isinstance(value, bytes) else str(value)


def short_repr(value: Any) -> str:
    """Return a value for a message, of 60 characters at most."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
