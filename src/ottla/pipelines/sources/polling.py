"""Sources that are asked for JSON objects from a position on: HTTP, and what is easiest to write oneself."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from ottla.errors import OttlaError
from ottla.pipelines.dead_letters import BadRow, BadRows, DeadLetterTopic
from ottla.pipelines.feeds.feed import Feed, Position, Write
from ottla.pipelines.feeds.feed_reader import MOST_ROWS
from ottla.pipelines.sources.fed import FedSource, not_beside
from ottla.pipelines.surroundings import Surroundings
from ottla.spark.columns.ddl import parse_schema
from ottla.spark.formats.json_format import Json

CHUNK = 10_000
ADDRESS = "url"
"""The field in whose value the characters of a secret must not end a part of an address."""


class PollingError(OttlaError):
    """What was asked did not answer, or not with what its columns say."""


class PollingSource(FedSource):
    """A source of one's own has two methods: what columns there are, and what comes after a position.

    Its rows are kept on the disk until they are in the sink, so `poll` need not be able to say the same again.
    """

    def columns(self) -> str:
        """The columns, such as `id bigint, name string`."""
        raise PollingError(f"type {self.type} does not say which columns it has; give it columns()")

    def poll(self, position: Any) -> tuple[Sequence[Any], Any]:
        """Rows after the position, as dicts, and the position after them; at first it is None. No rows: nothing new.

        Positions are what JSON has. Secrets in the fields of the source have their values here.
        """
        raise PollingError(f"type {self.type} does not say what its rows are; give it poll(position)")

    def feed(self, around: Surroundings) -> tuple[Feed, StructType]:
        columns = not_beside(self.describe(), parse_schema("schema", self.columns()))
        return PollingFeed(self.resolved(around), columns, around.letters), columns

    def resolved(self, around: Surroundings) -> PollingSource:
        """The same with the values of its secrets."""
        found = {name: with_values(value, around.resolve) for name, value in self if name != ADDRESS}
        if hasattr(self, ADDRESS):
            found[ADDRESS] = with_values(getattr(self, ADDRESS), around.resolve_address)
        return self.model_copy(update=found)


def json_of(row: Any) -> bytes:
    """Return a row as JSON; as a text, which no schema has, if it is nested too deep or refers to itself."""
    try:
        return json.dumps(row, default=str).encode()
    except (RecursionError, ValueError) as error:
        return json.dumps(f"{type(row).__name__} that is not JSON: {error}").encode()


def with_values(value: Any, resolve: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return resolve(value)
    if isinstance(value, dict):
        return {name: with_values(one, resolve) for name, one in value.items()}
    return [with_values(one, resolve) for one in value] if isinstance(value, list) else value


class PollingFeed:
    """A source that polls, as Spark's driver asks it."""

    goes_ahead = False  # an address is asked when its rows are wanted

    def __init__(self, source: PollingSource, columns: StructType, letters: DeadLetterTopic | None = None) -> None:
        self.source, self.columns = source, columns
        self.bad_rows = BadRows(letters)
        self.most = self.portion = MOST_ROWS

    @property
    def dead_letters(self) -> int:
        return self.bad_rows.count

    def poll(self, position: Position | None, write: Write) -> Position | None:
        self.bad_rows.begin()
        rows, after = self.source.poll(None if position is None else position["at"])
        for start in range(0, len(rows), CHUNK):
            write(self.batch(rows[start : start + CHUNK]))
        self.bad_rows.send()
        return {"at": after}

    def batch(self, rows: Sequence[Any]) -> pa.RecordBatch:
        """Return the rows that fit the schema, and put the others aside."""
        schema = to_arrow_schema(self.columns, timezone="UTC")
        texts: Any = pa.array([json_of(row) for row in rows], pa.binary())
        found = Json(pa.struct(list(schema))).decode(texts)
        for row, told in found.errors.items():
            text = texts[row].as_py().decode()
            cause = f"{text[:80]!r} is not what schema says: {told}"
            self.bad_rows.add(self.source.describe(), BadRow({"value": text}, cause), "correct schema")
        values: Any = found.values
        batch = pa.RecordBatch.from_arrays(values.flatten(), schema=schema)
        return (
            batch.take(pa.array([row for row in range(len(rows)) if row not in found.errors]))
            if found.errors
            else batch
        )

    def settle(self, position: Position | None) -> None:
        """There is nobody to tell."""

    def freeze(self) -> None:
        """A run once ends when nothing new comes."""

    def close(self) -> None:
        """Nothing is open between two polls."""
