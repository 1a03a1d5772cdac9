"""`type: http`: rows to a server of the web, as JSON."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pyarrow as pa
from pydantic import Field
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from ottla.pipelines.address import shown
from ottla.pipelines.dead_letters import REMEDY, BadRow, DeadLetterTopic, RefusedBatchError
from ottla.pipelines.http_calls import RefusedContentError, WebUrl, call
from ottla.pipelines.rows import column, in_json, values
from ottla.pipelines.sinks.batches import Written, start_batches
from ottla.pipelines.sinks.sink import Sink
from ottla.pipelines.surroundings import How, Surroundings
from ottla.spark.tables.guard import BatchMark

JSON = "json"


class HttpSink(Sink):
    """Each request has some rows and an `Idempotency-Key`, which is the same when they are sent again."""

    guarantee: ClassVar[str] = "at least once; exactly once where the server heeds Idempotency-Key"
    type: Literal["http"]
    url: WebUrl
    """Where rows go."""
    method: Literal["POST", "PUT", "PATCH"] = "POST"
    headers: dict[str, str] = {}
    """What is sent besides, such as `Authorization: Bearer ${env:TOKEN}`."""
    batch_max_rows: int = Field(default=1, ge=1, alias="batch.max.rows")
    """How many rows a request has: with one it is an object, with more a list of objects."""
    timeout_ms: int = Field(default=30_000, ge=1, alias="timeout.ms")
    """How long an answer may take."""

    def describe(self) -> str:
        return shown(self.url)

    def start(self, frame: DataFrame, around: Surroundings, how: How) -> StreamingQuery:
        whole = F.struct(*map(column, values(frame)))
        rows = frame.select(in_json(whole).alias(JSON))
        headers = {name: around.resolve(value) for name, value in self.headers.items()}
        to = Sender(
            around.resolve_address(self.url), self.method, headers, self.batch_max_rows, self.timeout_ms, around.letters
        )
        return start_batches(rows, how, lambda query: to, whole=False)


@dataclass(frozen=True)
class Sender:
    """What a task sends with."""

    url: WebUrl
    method: str
    headers: dict[str, str]
    rows: int
    timeout_ms: int
    letters: DeadLetterTopic | None = None
    """The dead letters for rows that the server refuses; None: the batch fails."""

    def __call__(self, mark: BatchMark, task: str, rows: Iterable[pa.RecordBatch]) -> Written:
        count, refused = 0, list[BadRow]()
        for number, texts in enumerate(together(rows, self.rows)):
            bad = self.send(f"{mark.query}/{mark.batch}/{task}/{number}", texts)
            refused += bad
            count += len(texts) - len(bad)
        if refused and self.letters is not None:
            self.letters.send(refused)
        return Written(count, len(refused))

    def send(self, name: str, texts: list[str]) -> list[BadRow]:
        """Send rows in one request, or by halves if the server refuses one of them; return the refused rows."""
        key = hashlib.sha256(name.encode()).hexdigest()[:32]
        headers = {"Content-Type": "application/json", "Idempotency-Key": key, **self.headers}
        body = texts[0] if self.rows == 1 else f"[{','.join(texts)}]"
        try:
            call(self.method, self.url, headers, self.timeout_ms, body=body.encode())
        except RefusedContentError as error:
            if self.letters is None:
                at = (
                    f"the row {texts[0][:200]}"
                    if len(texts) == 1
                    else f"{len(texts)} rows, the first of which is {texts[0][:200]}"
                )
                raise RefusedBatchError(
                    f"{error}; the request had {at}; correct or leave out such rows in a step, or {REMEDY}"
                ) from None
            if len(texts) == 1:
                return [BadRow(json.loads(texts[0]), str(error))]
            half = len(texts) // 2
            return [*self.send(f"{name}/0", texts[:half]), *self.send(f"{name}/1", texts[half:])]
        return []


def together(rows: Iterable[pa.RecordBatch], most: int) -> Iterator[list[Any]]:
    """The rows of a task, so many at a time."""
    held: list[Any] = []
    for batch in rows:
        for text in batch.column(JSON).to_pylist():
            held.append(text)
            if len(held) == most:
                yield held
                held = []
    if held:
        yield held
