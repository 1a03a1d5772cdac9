"""Rows to a server of the web: a request that is sent again says so."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
import pytest

from ottla.errors import OttlaError
from ottla.pipelines.http_calls import connection_pool
from ottla.pipelines.sinks.http import JSON, HttpSender
from ottla.spark.tables.guard import BatchMark
from tests.pipelines.dead_letters import broker_of_letters, letters_at, topic_at
from tests.pipelines.web import Answer, Asked, Web, web


@pytest.fixture
def server() -> Iterator[Web]:
    with web() as found:
        yield found
        connection_pool().clear()


def rows(*numbers: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({JSON: [f'{{"id": {one}}}' for one in numbers]})


def batch(number: int) -> BatchMark:
    return BatchMark("q", number)


def test_requests_have_so_many_rows_and_keys_that_are_the_same_when_sent_again(server: Web) -> None:
    sender = HttpSender(server.url, "POST", {"X-Who": "me"}, 2, 30_000)
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
    HttpSender(server.url, "PUT", {}, 1, 30_000)(batch(0), "0", [rows(1, 2)])
    assert [(one.method, json.loads(one.body)) for one in server.asked] == [("PUT", {"id": 1}), ("PUT", {"id": 2})]


def test_a_server_that_is_busy_gets_the_same_again_and_one_that_refuses_is_reported(server: Web) -> None:
    sender = HttpSender(server.url, "POST", {}, 1, 30_000)
    server.answers += [Answer(status=503)]
    assert sender(batch(0), "0", [rows(1)]) == (1, 0)
    assert len({one.headers["Idempotency-Key"] for one in server.asked}) == 1
    server.answers += [Answer(b"bad id", status=422)]
    with pytest.raises(
        OttlaError, match=f"^{server.url} answered 422 .*: bad id; the request had the row .*1.*; correct"
    ):
        sender(batch(0), "0", [rows(1)])


def test_rows_that_a_server_rejects_are_set_aside_and_the_others_arrive_once(server: Web) -> None:
    def answer(asked: Asked) -> Answer:
        found = json.loads(asked.body)
        return Answer(b"bad id", 422) if any(one["id"] in (2, 5) for one in found) else Answer()

    server.answer = answer  # type: ignore[method-assign]
    with broker_of_letters() as broker:
        sender = HttpSender(server.url, "POST", {}, 4, 30_000, topic_at(broker))
        for _ in range(2):
            assert sender(batch(0), "0", [rows(1, 2, 3, 4, 5, 6)]) == (4, 2)
        found = letters_at(broker)
    assert [row for row, _ in found] == [{"id": 2}, {"id": 5}] * 2
    assert {"answered 422" in cause and "bad id" in cause for _, cause in found} == {True}
    arrived = {
        one.headers["Idempotency-Key"]: [row["id"] for row in json.loads(one.body)]
        for one in server.asked
        if answer(one).status == 200
    }
    assert sorted(number for numbers in arrived.values() for number in numbers) == [1, 3, 4, 6]


def test_a_server_that_fails_for_another_reason_puts_no_row_aside(server: Web) -> None:
    server.answers += [Answer(b"who are you?", status=401)]
    with broker_of_letters() as broker:
        sender = HttpSender(server.url, "POST", {}, 1, 30_000, topic_at(broker))
        with pytest.raises(OttlaError, match="answered 401"):
            sender(batch(0), "0", [rows(1)])
        assert letters_at(broker) == []
