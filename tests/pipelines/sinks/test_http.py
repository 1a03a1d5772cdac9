"""Rows to a server of the web: a request that is sent again says so."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
import pytest

from ottla.errors import OttlaError
from ottla.pipelines.http_calls import pool
from ottla.pipelines.sinks.http import JSON, Sender
from ottla.spark.tables.guard import BatchMark
from tests.pipelines.web import Answer, Web, web


@pytest.fixture
def server() -> Iterator[Web]:
    with web() as found:
        yield found
        pool().clear()


def rows(*numbers: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({JSON: [f'{{"id": {one}}}' for one in numbers]})


def batch(number: int) -> BatchMark:
    return BatchMark("q", number)


def test_requests_have_so_many_rows_and_keys_that_are_the_same_when_sent_again(server: Web) -> None:
    sender = Sender(server.url, "POST", {"X-Who": "me"}, 2, 30_000)
    assert sender(batch(3), "0", [rows(1, 2), rows(3)]) == (3, 0)
    assert [json.loads(one.body) for one in server.asked] == [[{"id": 1}, {"id": 2}], [{"id": 3}]]
    assert {one.headers["X-Who"] for one in server.asked} == {"me"}
    first = [one.headers["Idempotency-Key"] for one in server.asked]
    sender(batch(3), "0", [rows(1, 2, 3)])
    assert [one.headers["Idempotency-Key"] for one in server.asked[2:]] == first
    sender(batch(4), "0", [rows(1)])
    sender(batch(3), "1", [rows(1)])
    assert len({one.headers["Idempotency-Key"] for one in server.asked}) == 4


def test_one_row_is_an_object(server: Web) -> None:
    Sender(server.url, "PUT", {}, 1, 30_000)(batch(0), "0", [rows(1, 2)])
    assert [(one.method, json.loads(one.body)) for one in server.asked] == [("PUT", {"id": 1}), ("PUT", {"id": 2})]


def test_a_server_that_is_busy_gets_the_same_again_and_one_that_refuses_is_told(server: Web) -> None:
    sender = Sender(server.url, "POST", {}, 1, 30_000)
    server.answers += [Answer(status=503)]
    assert sender(batch(0), "0", [rows(1)]) == (1, 0)
    assert len({one.headers["Idempotency-Key"] for one in server.asked}) == 1
    server.answers += [Answer(b"bad id", status=422)]
    with pytest.raises(OttlaError, match=f"^{server.url} answers 422 .*: bad id$"):
        sender(batch(0), "0", [rows(1)])
