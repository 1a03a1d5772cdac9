"""Pipelines on the console: their status, and sending their dead letters again."""

from __future__ import annotations

import json
from typing import Any

from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ConfigError
from tests.console.conftest import Browser, browser_of

RUNNING = {"name": "bills", "state": "running", "batch": 3, "rows_in": 10, "rows_out": 9, "dead_letters": 1}


class Desk:
    """One pipeline with one dead letter."""

    def __init__(self) -> None:
        self.letters = 1
        self.state = "running"

    def status(self) -> list[dict[str, Any]]:
        return [{**RUNNING, "state": self.state, "dead_letters": self.letters}]

    def pause(self, name: str) -> str:
        self.state = "paused"
        return f"{name} is paused"

    def resume(self, name: str) -> str:
        self.state = "running"
        return f"{name} is running"

    def resend(self, name: str) -> str:
        if name != "bills":
            raise ConfigError(f"there is no pipeline {name!r}")
        self.letters, send_line = 0, self.letters
        return f"{send_line} sent again"


def test_pipelines_are_shown_and_pushed_and_their_dead_letters_sent_again(broker: Broker) -> None:
    with browser_of(broker.bootstrap_servers, pipelines=Desk()) as asking:
        assert asking.ask("pipelines") == [RUNNING]
        assert asking.order("resend", name="bills") == (200, "1 sent again")
        assert asking.ask("pipelines")[0]["dead_letters"] == 0
        assert asking.order("pause", name="bills") == (200, "bills is paused")
        assert asking.ask("pipelines")[0]["state"] == "paused"
        assert asking.order("resume", name="bills") == (200, "bills is running")
        assert asking.ask("pipelines")[0]["state"] == "running"
        assert asking.send("GET", "/api/pause?name=bills")[0] == 405
        status, answer = asking.order("resend", name="bill")
        assert (status, answer["error"]) == (502, "there is no pipeline 'bill'")
        assert asking.send("GET", "/api/resend?name=bills")[0] == 405
        assert asking.send("POST", "/api/resend", b"{}", Origin="http://elsewhere")[0] == 403
        assert first_event(asking, "/api/live/pipelines")[0]["name"] == "bills"


def first_event(asking: Browser, path: str) -> Any:
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", asking.door.port, timeout=60)
    connection.request("GET", path)
    answer = connection.getresponse()
    line = answer.readline()
    connection.close()
    return json.loads(line.removeprefix(b"data: "))


def test_a_console_without_pipelines_explains_how_to_configure_them(browser: Browser) -> None:
    assert browser.ask("pipelines") is None
    status, answer = browser.order("resend", name="bills")
    assert (status, answer["error"]) == (400, "this console shows no pipelines; start it with --pipelines FILE|FOLDER")
