"""`ottla broker --log-format json`: each line can be parsed by a log collector."""

from __future__ import annotations

import json
import logging
import signal
import socket
import sys

from ottla.cli.json_log import JsonFormatter
from tests.cli.conftest import PATIENCE, start


def test_each_line_of_a_broker_s_log_is_an_object() -> None:
    process = start("broker", "--listen", "127.0.0.1:0", "--log-format", "json", "-vv")
    assert process.stdout is not None
    host, _, port = process.stdout.readline().removeprefix("ready ").strip().rpartition(":")
    with socket.create_connection((host, int(port)), PATIENCE) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert stranger.recv(1) == b""
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE)
    lines = [json.loads(line) for line in err.splitlines()]
    assert "no --data-dir: topics are deleted when the broker stops" in [line["message"] for line in lines]
    assert [line for line in lines if line["logger"].startswith("ottla.broker.")]
    assert all(line.keys() >= {"at", "level", "logger", "message"} for line in lines)


def test_a_traceback_is_in_its_line() -> None:
    try:
        raise ValueError("a\nb")
    except ValueError:
        record = logging.LogRecord("ottla.x", logging.ERROR, "", 0, "%s failed", ("it",), sys.exc_info())
    line = JsonFormatter().format(record)
    answer = json.loads(line)
    assert "\n" not in line
    assert (answer["logger"], answer["level"], answer["message"]) == ("ottla.x", "ERROR", "it failed")
    assert answer["exception"].endswith("ValueError: a\nb")
