"""The tour in the console, and the requests of its page."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.console.conftest import PATIENCE, Browser, browser_of

NOBODY = "127.0.0.1:1"


@pytest.fixture
def touring() -> Iterator[Browser]:
    with browser_of(NOBODY) as browser:
        yield browser


def read_steps(browser: Browser) -> Iterator[Any]:
    """Yield the events of the playing chapter until its end."""
    connection = http.client.HTTPConnection("127.0.0.1", browser.door.port, timeout=PATIENCE)
    try:
        connection.request("GET", "/api/live/tour")
        with connection.getresponse() as answer:
            for line in answer:
                if line.strip():
                    yield json.loads(line.removeprefix(b"data: "))
    finally:
        connection.close()


def test_a_chapter_executes_a_step_for_each_command_and_its_clients_can_be_inspected(touring: Browser) -> None:
    names = [each["name"] for each in touring.ask("tour")["chapters"]]
    assert "first-poll" in names
    assert touring.order("tour-play", name="first-poll") == (200, None)
    lines = read_steps(touring)
    assert next(lines)["step"] == 1
    assert [each["client_id"] for each in touring.ask("tour-clients")["clients"]] == ["reader-1"]
    for step in (2, 3, 4):
        assert touring.order("tour-next") == (200, None)
        assert next(lines)["step"] == step
    touring.order("tour-next")
    assert list(lines) == [{"ended": True}]
    assert [each.get("step") for each in read_steps(touring)] == [1, 2, 3, 4, None]
    status, answer = touring.order("tour-next")
    assert (status, answer["error"]) == (400, "no chapter plays: start one")


def test_a_chapter_that_plays_ends_with_the_console() -> None:
    with browser_of(NOBODY) as browser:
        browser.order("tour-play", name="first-poll")
        lines = read_steps(browser)
        assert next(lines)["step"] == 1
    assert list(lines) == []


def test_an_unknown_chapter_is_rejected_and_get_starts_nothing(touring: Browser) -> None:
    status, answer = touring.order("tour-play", name="../nowhere")
    assert (status, answer["error"]) == (400, "there is no chapter '../nowhere'; choose one on the tour's page")
    assert touring.order("tour-next")[0] == 400
    assert touring.send("GET", "/api/tour-play?name=eager")[0] == 405
    assert list(read_steps(touring)) == []
