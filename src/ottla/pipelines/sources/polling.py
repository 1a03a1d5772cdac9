"""Sources that are polled for JSON objects from a position: HTTP, and connectors of users."""

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
from ottla.pipelines.pipeline_context import PipelineContext
from ottla.pipelines.sources.fed import FedSource, check_column_names
from ottla.spark.columns.ddl import parse_schema
from ottla.spark.formats.json_format import Json

CHUNK = 10_000
ADDRESS = "url"
"""The field in which secrets are percent-encoded."""


class PollingError(OttlaError):
    """A source did not answer, or its answer does not match the columns."""


class PollingSource(FedSource):
    """The base of a user's source, which defines two methods: the columns, and the rows after a position.

    Its rows are stored on disk until they are in the sink, so `poll` need not be repeatable.
    """

    def columns(self) -> str:
        """Return the columns, for example `id bigint, name string`."""
        raise PollingError(f"type {self.type} has no columns; define columns()")

    def poll(self, position: Any) -> tuple[Sequence[Any], Any]:
        """Return the rows after the position, as dicts, and the position after them; no rows if nothing is new.

        The first position is None.

        A position is a JSON value. Secrets in the fields of the source are resolved.
        """
        raise PollingError(f"type {self.type} has no rows; define poll(position)")

    def feed(self, context: PipelineContext) -> tuple[Feed, StructType]:
        columns = check_column_names(self.describe(), parse_schema("schema", self.columns()))
        return PollingFeed(self.resolve_secrets(context), columns, context.dead_letters), columns

    def resolve_secrets(self, context: PipelineContext) -> PollingSource:
        """Return the source with its secrets resolved."""
        found = {name: with_values(value, context.resolve) for name, value in self if name != ADDRESS}
        if hasattr(self, ADDRESS):
            found[ADDRESS] = with_values(getattr(self, ADDRESS), context.resolve_address)
        return self.model_copy(update=found)


def json_of(row: Any) -> bytes:
    """Return a row as JSON.

    A row nested too deeply, or with a reference to itself, becomes a text, which matches no schema.
    """
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
    """The feed of a source that polls, in Spark's driver."""

    fetches_ahead = False  # an address is only requested when its rows are needed

    def __init__(self, source: PollingSource, columns: StructType, dead_letters: DeadLetterTopic | None = None) -> None:
        self.source, self.columns = source, columns
        self.bad_rows = BadRows(dead_letters)
        self.most = self.portion = MOST_ROWS

    @property
    def dead_letters(self) -> int:
        return self.bad_rows.count

    def poll(self, position: Position | None, write: Write) -> Position | None:
        self.bad_rows.clear()
        rows, after = self.source.poll(None if position is None else position["at"])
        for start in range(0, len(rows), CHUNK):
            write(self.batch(rows[start : start + CHUNK]))
        self.bad_rows.send()
        return {"at": after}

    def batch(self, rows: Sequence[Any]) -> pa.RecordBatch:
        """Return the rows that match the schema, and put the others aside."""
        schema = to_arrow_schema(self.columns, timezone="UTC")
        texts: Any = pa.array([json_of(row) for row in rows], pa.binary())
        found = Json(pa.struct(list(schema))).decode(texts)
        for row, problem in found.errors.items():
            text = texts[row].as_py().decode()
            cause = f"{text[:80]!r} does not match schema: {problem}"
            self.bad_rows.add(self.source.describe(), BadRow({"value": text}, cause), "correct schema")
        values: Any = found.values
        batch = pa.RecordBatch.from_arrays(values.flatten(), schema=schema)
        return (
            batch.take(pa.array([row for row in range(len(rows)) if row not in found.errors]))
            if found.errors
            else batch
        )

    def release(self, position: Position | None) -> None:
        """Do nothing: the source does not store rows."""

    def freeze(self) -> None:
        """Do nothing: a pipeline that runs once ends when a poll returns no rows."""

    def close(self) -> None:
        """Do nothing: no connection is open between two polls."""
