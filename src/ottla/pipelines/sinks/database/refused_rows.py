"""Rows that a table refuses, as records of the dead-letter topic: the row as JSON, with the column and the cause in Connect's headers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyspark.sql.types import IntegerType, LongType, ShortType, StringType

from ottla.pipelines.databases.table import Table, TableColumn
from ottla.spark.sink.dead_letters import PREFIX, STAGE

LIMITS: dict[type[Any], int] = {ShortType: 15, IntegerType: 31, LongType: 63}
LENGTH = re.compile(r"char\w*(?: varying)?\((\d+)\)")


class RefusedRow(NamedTuple):
    """A row and the cause."""

    values: Mapping[str, Any]
    cause: str


@dataclass(frozen=True)
class DeadLetterTopic:
    """Where the refused rows of a pipeline are put aside."""

    topic: str
    pipeline: str
    settings: Mapping[str, str]
    """Of the producer."""

    def send(self, rows: Sequence[RefusedRow]) -> None:
        """Write all of them; returns when the brokers have them."""
        from ottla.client.producer import Producer

        with Producer({**self.settings, "acks": "all"}) as producer:
            results = [producer.send(self.topic, value_of(one.values), headers=self.headers(one)) for one in rows]
            producer.flush()
            for one in results:
                one.result()

    def headers(self, row: RefusedRow) -> list[tuple[str, bytes | None]]:
        """The cause in the words of Kafka Connect; there is no topic, because the row is not a record any more."""
        known = {"topic": "", "connector.name": self.pipeline, "stage": STAGE, "exception.message": row.cause}
        return [(PREFIX + name, text.encode(errors="replace")) for name, text in known.items()]


def value_of(values: Mapping[str, Any]) -> bytes:
    """A row as JSON."""
    return json.dumps(values, default=lambda one: one.hex() if isinstance(one, bytes) else str(one)).encode()


def cause_of(error: Exception, table: Table, values: Mapping[str, Any]) -> str:
    """The cause, with the column where the database does not name it."""
    told = " ".join(str(error).split()) or type(error).__name__
    for name, wrong in wrong_columns(table, values):
        return f"column {name!r} {wrong}: {told}"
    return told


def wrong_columns(table: Table, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The columns whose values do not fit."""
    for column in table.columns:
        if column.name in values and (wrong := misfit(column, values[column.name])) is not None:
            yield column.name, wrong


def misfit(column: TableColumn, value: Any) -> str | None:
    """What is wrong with a value, as far as its column's type says it."""
    if isinstance(value, str) and "\0" in value:
        return "has the character NUL"
    bits = LIMITS.get(type(column.kind))
    if isinstance(value, int) and bits is not None and not -(1 << bits) <= value < 1 << bits:
        return f"is {column.type}, which {value} does not fit into"
    length = LENGTH.search(column.type)
    if isinstance(value, str) and isinstance(column.kind, StringType) and length and len(value) > int(length[1]):
        return f"is {column.type}, and the value has {len(value)} characters"
    return None
