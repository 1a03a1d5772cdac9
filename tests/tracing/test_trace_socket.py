"""The trace socket of a consumer, and its observers."""

from __future__ import annotations

import gc
import json
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import closing
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from ottla import Consumer, TopicPartition
from ottla.model import FOREVER
from ottla.tracing.frames import encode_line, restore_frame
from ottla.tracing.plain import convert_value
from ottla.tracing.trace_socket import MOST_WATCHERS
from tests.patience import PATIENCE, eventually

NOBODY = "127.0.0.1:1"


@pytest.fixture
def folder(short_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of a socket that does not exist yet."""
    monkeypatch.setenv("OTTLA_TRACE", f"{short_path}/traced")
    return short_path / "traced"


def looking_at(path: Path) -> socket.socket:
    watcher = socket.socket(socket.AF_UNIX)
    watcher.settimeout(PATIENCE)
    watcher.connect(str(path))
    return watcher


def lines_of(watcher: socket.socket) -> Iterator[Any]:
    with watcher.makefile("rb") as lines:
        for line in lines:
            yield json.loads(line)


def test_an_observer_gets_the_client_identity_then_events_and_snapshots(folder: Path) -> None:
    with Consumer(bootstrap_servers=NOBODY, group_id="seen", client_id="one") as consumer:
        (path,) = folder.iterdir()
        with closing(looking_at(path)) as watcher:
            lines = lines_of(watcher)
            hello, first = next(lines), next(lines)
            assert (hello["kind"], hello["client_id"]) == ("consumer", "one")
            assert first["snapshot"]["coordinator"]["group_id"] == "seen"
            consumer.assign([TopicPartition("t", 0)])
            for _ in range(3):
                consumer.poll(0)
            consumer.close()
            reported = list(lines)
    assert (hello["facts"]["Polled"], [0.0]) == (
        ["gap_ms"],
        next(line["events"][0][2] for line in reported if line["events"]),
    )
    reported = [restore_frame(line) for line in reported]
    assert [event["event"] for line in reported for event in line["events"]].count("Polled") == 3
    assert next(event["text"] for line in reported for event in line["events"]) == "poll after 0 ms"
    assert [each["partition"] for each in reported[-1]["snapshot"]["subscription"]["partitions"]] == ["t-0"]
    assert reported[-1]["dropped"] == 0
    assert list(folder.iterdir()) == []


def test_only_the_same_user_may_connect(folder: Path) -> None:
    with Consumer(bootstrap_servers=NOBODY):
        (path,) = folder.iterdir()
        assert (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(folder.stat().st_mode)) == (0o600, 0o700)


def test_no_event_is_recorded_without_observers(folder: Path) -> None:
    with Consumer(bootstrap_servers=NOBODY) as consumer:
        assert not consumer._core.events.active
        with closing(looking_at(*folder.iterdir())) as watcher:
            next(lines_of(watcher))
            eventually(lambda: consumer._core.events.active)
        eventually(lambda: not consumer._core.events.active)


def test_the_socket_of_a_garbage_collected_consumer_is_removed(folder: Path) -> None:
    consumer = Consumer(bootstrap_servers=NOBODY)
    assert len(list(folder.iterdir())) == 1
    del consumer
    gc.collect()
    eventually(lambda: not list(folder.iterdir()))


def test_an_observer_above_the_limit_is_disconnected_and_the_others_continue(folder: Path) -> None:
    with Consumer(bootstrap_servers=NOBODY):
        (path,) = folder.iterdir()
        watchers = [looking_at(path) for _ in range(MOST_WATCHERS)]
        streams = [lines_of(watcher) for watcher in watchers]
        assert {next(stream)["kind"] for stream in streams} == {"consumer"}
        with closing(looking_at(path)) as late:
            assert list(lines_of(late)) == []
        assert {"snapshot" in next(stream) for stream in streams} == {True}
        for stream, watcher in zip(streams, watchers, strict=True):
            stream.close()  # type: ignore[attr-defined]
            watcher.close()


def test_without_a_usable_socket_the_consumer_works_and_the_reason_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("OTTLA_TRACE", str(tmp_path / "file"))
    with Consumer(bootstrap_servers=NOBODY, client_id="blind") as consumer:
        assert consumer.assignment() == set()
    assert f"OTTLA_TRACE={str(tmp_path / 'file')!r}: tracing of blind failed" in caplog.text


def test_without_the_variable_there_is_neither_socket_nor_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTTLA_TRACE", raising=False)
    before = set(threading.enumerate())
    with Consumer(bootstrap_servers=NOBODY):
        new = set(threading.enumerate()) - before
        assert not [thread for thread in new if thread.name.startswith("ottla-trace")]


def test_values_without_a_json_form_become_text_or_none() -> None:
    given = {TopicPartition("t", 1): (FOREVER, {2}), "b": TopicPartition("<b>", 0)}
    assert convert_value(given) == {"t-1": [None, [2]], "b": "<b>-0"}


class Text(str):
    """An object like the topic of a test."""


def test_each_line_is_json_for_any_event() -> None:
    value = {
        "name": "\udc80",
        "large": 1 << 70,
        "topic": convert_value(Text("orders")),
        "level": convert_value(HTTPStatus.OK),
        "ü": convert_value({1.5}),
    }
    assert json.loads(encode_line(value)) == {
        "name": "\udc80",
        "large": 1 << 70,
        "topic": "orders",
        "level": 200,
        "ü": [1.5],
    }
    assert json.loads(encode_line({"topic": convert_value(Text("é"))})) == {"topic": "é"}
