"""Addresses of the web as sources: by a cursor, and by what says that nothing has changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from ottla.errors import OttlaError
from ottla.pipelines.http_calls import connection_pool
from ottla.pipelines.sources.http import HttpSource
from tests.pipelines.sources.asked import Asked
from tests.pipelines.web import Answer, Web, web
from tests.pipelines.web import Asked as Question

MODEL: TypeAdapter[HttpSource] = TypeAdapter(HttpSource)
CURSOR = {"cursor.parameter": "after", "cursor.field": "id"}


@pytest.fixture
def server() -> Iterator[Web]:
    with web() as found:
        yield found
        connection_pool().clear()


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    return Asked(tmp_path)


def source(url: str, **more: Any) -> HttpSource:
    return MODEL.validate_python({"type": "http", "url": url, "schema": "id bigint, item string", **more})


def orders(*numbers: int) -> list[dict[str, Any]]:
    return [{"id": one, "item": f"item {one}", "more": [1]} for one in numbers]


def ids(rows: list[dict[str, Any]]) -> list[int]:
    return [row["id"] for row in rows]


class Shop:
    """Pages of two orders after a cursor."""

    def __init__(self) -> None:
        self.all = orders(1, 2, 3)

    def page(self, question: Question) -> Answer:
        after = int(question.fields.get("after", 0))
        return Answer([one for one in self.all if one["id"] > after][:2])


def test_each_page_is_read_once_and_later_ones_by_another_process(server: Web, asked: Asked) -> None:
    shop = Shop()
    server.answer = shop.page  # type: ignore[method-assign, assignment]
    model = source(server.url, **CURSOR)
    reader = asked.reader(model)
    assert ids(asked.next(reader)) == [1, 2]
    assert ids(asked.next(reader)) == [3]
    assert asked.next(reader) == []
    shop.all += orders(4)
    assert asked.all(asked.reader(model)) == [{"id": 4, "item": "item 4"}]
    assert [one.fields.get("after") for one in server.asked] == [None, "2", "3", "3", "4"]


def test_a_cursor_may_be_a_token_of_the_answer_and_objects_lie_deeper(server: Web, asked: Asked) -> None:
    server.answers += [
        Answer({"data": {"items": orders(1)}, "next": "abc"}),
        Answer({"data": {"items": []}, "next": "abc"}),
    ]
    way = {"cursor.parameter": "page", "cursor.path": "next", "records.path": "data.items"}
    assert ids(asked.all(asked.reader(source(server.url, **way)))) == [1]
    assert [one.fields for one in server.asked] == [{}, {"page": "abc"}]


@pytest.mark.parametrize("header", ["ETag", "Last-Modified"])
def test_a_document_is_read_again_when_it_is_another(server: Web, asked: Asked, header: str) -> None:
    first, second = {header: '"one"'}, {header: '"two"'}
    server.answers += [Answer(orders(1, 2), headers=first), Answer(status=304), Answer(orders(1, 3), headers=second)]
    server.answers += [Answer(orders(1, 3), headers=second)]
    reader = asked.reader(source(server.url))
    assert [ids(asked.next(reader)) for _ in range(4)] == [[1, 2], [], [1, 3], []]
    condition = {"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"}[header]
    assert [one.headers.get(condition) for one in server.asked] == [None, '"one"', '"one"', '"two"']


def test_a_replayed_batch_is_the_same_even_if_the_server_responds_differently(server: Web, asked: Asked) -> None:
    server.answers += [Answer(orders(1), headers={"ETag": "a"})]
    model = source(server.url)
    found = asked.next(asked.reader(model))
    assert asked.again(asked.reader(model)) == found


def test_headers_have_their_secrets_and_positions_have_none(server: Web, asked: Asked) -> None:
    server.answers += [Answer(orders(1))]
    headers = {"Authorization": "Bearer ${env:TOKEN}"}
    model = source(f"{server.url}?key=${{env:TOKEN}}", headers=headers, **CURSOR)
    asked.next(asked.reader(model, TOKEN="s3cret"))
    assert server.asked[0].headers["Authorization"] == "Bearer s3cret"
    assert server.asked[0].fields == {"key": "s3cret"}
    assert "s3cret" not in f"{asked.log} {model.describe()}"


def test_a_request_to_a_busy_server_is_retried(server: Web, asked: Asked) -> None:
    server.answers += [Answer(status=503, headers={"Retry-After": "0"}), Answer(orders(1))]
    assert ids(asked.next(asked.reader(source(server.url, **CURSOR)))) == [1]


WRONG: dict[str, tuple[dict[str, Any], Answer]] = {
    "answered 404 Not Found: no such thing": (CURSOR, Answer(b"no such thing", 404)),
    "the response is not JSON": (CURSOR, Answer(b"<html>")),
    "the response is not JSON: maximum recursion": (CURSOR, Answer(b"[" * 200_000)),
    "there is no list of objects in the response; set records.path": (CURSOR, Answer({"items": []})),
    "there is no list of objects at 'a.b'": ({**CURSOR, "records.path": "a.b"}, Answer({"a": 1})),
    "the response has 1 objects and no next cursor in id": (CURSOR, Answer([{"item": "x"}])),
    "the response has neither ETag nor Last-Modified": ({}, Answer(orders(1))),
    "does not match schema": (CURSOR, Answer([{"id": "one", "item": "x"}])),
}


@pytest.mark.parametrize("message", WRONG)
def test_an_invalid_response_is_an_error(server: Web, asked: Asked, message: str) -> None:
    way, answer = WRONG[message]
    server.answers.append(answer)
    with pytest.raises(OttlaError) as error:
        asked.next(asked.reader(source(f"{server.url}?key=s3cret", **way)))
    assert message in str(error.value)
    assert "s3cret" not in str(error.value)
    assert asked.log == []


@pytest.mark.behaviour("D8")
def test_a_server_disconnected_during_a_read_is_an_error_and_each_order_is_read_once(
    asked: Asked,
) -> None:
    shop = Shop()
    with web() as before:
        before.answer = shop.page  # type: ignore[method-assign, assignment]
        reader = asked.reader(source(before.url, **CURSOR))
        found = ids(asked.next(reader))
        connection_pool().clear()  # connections go with their server
    for _ in range(2):
        with pytest.raises(OttlaError, match=f"^{before.url} "):
            asked.next(reader)
    shop.all += orders(4)
    with web(before.port) as after:
        after.answer = shop.page  # type: ignore[method-assign, assignment]
        found += ids(asked.all(reader))
        connection_pool().clear()
    assert found == [1, 2, 3, 4]


def test_an_unreachable_server_is_an_error(asked: Asked) -> None:
    with web() as gone:
        url = gone.url
    with pytest.raises(OttlaError, match=f"^{url} did not answer: "):
        asked.next(asked.reader(source(url, **CURSOR)))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"url": "ftp://h/x"}, "'ftp://h/x' is not a web address; write for example `https://host/path`"),
        ({"cursor.parameter": "after"}, "cursor.parameter needs either cursor.field or cursor.path"),
        ({"cursor.field": "id"}, "cursor.parameter needs either cursor.field or cursor.path"),
    ],
)
def test_a_file_that_is_not_valid_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as error:
        source(**{"url": "https://h/x", **given})
    assert message in str(error.value)
