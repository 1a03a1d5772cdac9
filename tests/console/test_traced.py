"""Traced clients in the console."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.client.consumer import Consumer
from ottla.console.traced import NotTracedError, Traced
from ottla.model import TopicPartition
from tests.console.conftest import PATIENCE, Browser, browser_of

NOBODY = "127.0.0.1:1"
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def folder(short_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OTTLA_TRACE", f"{short_path}/traced")
    (folder := short_path / "traced").mkdir()
    return folder


@pytest.fixture
def looking(folder: Path) -> Iterator[Browser]:
    with browser_of(NOBODY, str(folder)) as browser:
        yield browser


def pushed(browser: Browser, name: str) -> Iterator[Any]:
    """Yield the events of a client that the page gets, until its end."""
    connection = http.client.HTTPConnection("127.0.0.1", browser.door.port, timeout=PATIENCE)
    try:
        connection.request("GET", f"/api/live/traced?name={name}")
        with connection.getresponse() as answer:
            assert answer.getheader("content-type", "").startswith("text/event-stream")
            for line in answer:
                if line.strip():
                    yield json.loads(line.removeprefix(b"data: "))
    finally:
        connection.close()


def test_a_traced_consumer_is_listed_and_streamed_until_it_ends(looking: Browser) -> None:
    with Consumer(bootstrap_servers=NOBODY, group_id=SCRIPT, client_id="one") as consumer:
        (client,) = looking.ask("traced")["clients"]
        assert (client["client_id"], client["kind"]) == ("one", "consumer")
        pushed_values = pushed(looking, client["name"])
        assert next(pushed_values)["client_id"] == "one"
        assert next(pushed_values)["snapshot"]["coordinator"]["group_id"] == SCRIPT
        consumer.assign([TopicPartition("t", 0)])
        consumer.poll(0)
        consumer.close()
        *rest, last = pushed_values
    assert "Polled" in [event["event"] for frame in rest for event in frame["events"]]
    assert last == {"ended": True}
    assert looking.ask("traced")["clients"] == []


def test_the_socket_of_a_killed_process_is_passed_over(folder: Path) -> None:
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(folder / "consumer-1-1.sock"))
    left.close()
    assert Traced(str(folder)).clients()["clients"] == []


@pytest.mark.parametrize("name", ["../x", "nobody", "", "x/../../y"])
def test_a_name_that_is_no_client_is_not_found(folder: Path, name: str) -> None:
    (folder.parent / "x.sock").touch()
    with pytest.raises(NotTracedError, match="there is no traced client"):
        Traced(str(folder)).path_of(name)


def test_a_missing_client_is_a_clear_error(looking: Browser) -> None:
    assert list(pushed(looking, "gone")) == [
        {"error": "there is no traced client 'gone', or it has stopped: reload the list"}
    ]


def test_without_a_folder_no_client_is_traced() -> None:
    assert Traced(None).clients() == {"folder": None, "clients": []}


def test_tracing_rejects_post_and_foreign_origins(looking: Browser) -> None:
    status, _, _ = looking.send("POST", "/api/traced", b"{}", **{"Content-Type": "application/json"})
    assert status == 405
    assert looking.send("GET", "/api/live/traced?name=x", Host="evil.example")[0] == 403
