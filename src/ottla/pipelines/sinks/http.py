"""`type: http`: rows to a web server, as JSON."""

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

from ottla.pipelines.address import without_secrets
from ottla.pipelines.dead_letters import REMEDY, BadRow, DeadLetterTopic, RefusedBatchError
from ottla.pipelines.http_calls import RefusedContentError, WebUrl, send_request
from ottla.pipelines.pipeline_context import PipelineContext, QuerySettings
from ottla.pipelines.rows import column, in_json, values
from ottla.pipelines.sinks.batches import WrittenCounts, start_batches
from ottla.pipelines.sinks.sink import Sink
from ottla.spark.tables.guard import BatchMark

JSON = "json"


class HttpSink(Sink):
    """Each request has some rows and an `Idempotency-Key`, which is the same when the rows are sent again."""

    guarantee: ClassVar[str] = "at least once; exactly once if the server honours Idempotency-Key"
    type: Literal["http"]
    url: WebUrl
    """The address for the rows."""
    method: Literal["POST", "PUT", "PATCH"] = "POST"
    headers: dict[str, str] = {}
    """Request headers, for example `Authorization: Bearer ${env:TOKEN}`."""
    batch_max_rows: int = Field(default=1, ge=1, alias="batch.max.rows")
    """The most rows of a request: with 1 the body is an object, otherwise a list of objects."""
    timeout_ms: int = Field(default=30_000, ge=1, alias="timeout.ms")
    """The timeout of a response."""

    def describe(self) -> str:
        return without_secrets(self.url)

    def start(self, frame: DataFrame, context: PipelineContext, query_settings: QuerySettings) -> StreamingQuery:
        whole = F.struct(*map(column, values(frame)))
        rows = frame.select(in_json(whole).alias(JSON))
        headers = {name: context.resolve(value) for name, value in self.headers.items()}
        to = HttpSender(
            context.resolve_address(self.url),
            self.method,
            headers,
            self.batch_max_rows,
            self.timeout_ms,
            context.dead_letters,
        )
        return start_batches(rows, query_settings, lambda query: to, whole=False)


@dataclass(frozen=True)
class HttpSender:
    """Sends the rows of a task."""

    url: WebUrl
    method: str
    headers: dict[str, str]
    rows: int
    timeout_ms: int
    dead_letters: DeadLetterTopic | None = None
    """The dead-letter topic for rows that the server rejects; None: the batch fails."""

    def __call__(self, mark: BatchMark, task: str, rows: Iterable[pa.RecordBatch]) -> WrittenCounts:
        count, refused = 0, list[BadRow]()
        for number, texts in enumerate(group_rows(rows, self.rows)):
            bad = self.send(f"{mark.query}/{mark.batch}/{task}/{number}", texts)
            refused += bad
            count += len(texts) - len(bad)
        if refused and self.dead_letters is not None:
            self.dead_letters.send(refused)
        return WrittenCounts(count, len(refused))

    def send(self, name: str, texts: list[str]) -> list[BadRow]:
        """Send rows in one request, in halves if the server rejects one of them; return the rejected rows."""
        key = hashlib.sha256(name.encode()).hexdigest()[:32]
        headers = {"Content-Type": "application/json", "Idempotency-Key": key, **self.headers}
        body = texts[0] if self.rows == 1 else f"[{','.join(texts)}]"
        try:
            send_request(self.method, self.url, headers, self.timeout_ms, body=body.encode())
        except RefusedContentError as error:
            if self.dead_letters is None:
                at = (
                    f"the row {texts[0][:200]}"
                    if len(texts) == 1
                    else f"{len(texts)} rows, the first is {texts[0][:200]}"
                )
                raise RefusedBatchError(
                    f"{error}; the request had {at}; correct or filter out such rows in a transform, or {REMEDY}"
                ) from None
            if len(texts) == 1:
                return [BadRow(json.loads(texts[0]), str(error))]
            half = len(texts) // 2
            return [*self.send(f"{name}/0", texts[:half]), *self.send(f"{name}/1", texts[half:])]
        return []


def group_rows(rows: Iterable[pa.RecordBatch], most: int) -> Iterator[list[Any]]:
    """Yield the rows of a task in lists of `most` rows."""
    held: list[Any] = []
    for batch in rows:
        for text in batch.column(JSON).to_pylist():
            held.append(text)
            if len(held) == most:
                yield held
                held = []
    if held:
        yield held
