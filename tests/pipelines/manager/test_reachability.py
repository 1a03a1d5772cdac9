"""Commands for a pipeline with unavailable brokers."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from ottla.cli.main import main
from ottla.pipelines.manager import reachability, topics

COMMANDS = [["dead-letters", "show"], ["dead-letters", "resend"], ["offsets", "reset", "--to-latest"]]


def written(folder: Path, **kafka: str) -> str:
    """Write a pipeline with an address of brokers where no process listens."""
    pipeline = {
        "source": {"type": "topic", "topic": "orders"},
        "sink": {"type": "console"},
        "errors": {"tolerance": "all", "deadLetterTopic": "dead"},
    }
    value = {"settings": {"bootstrap.servers": "127.0.0.1:1", "kafka": kafka}, "pipelines": {"p": pipeline}}
    file = folder / "p.yaml"
    file.write_text(json.dumps(value), encoding="utf-8")
    return str(file)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_brokers_that_are_not_there_are_waited_for_as_long_as_one_question_may_take(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert int(reachability.PATIENCE["default.api.timeout.ms"]) < 10_000
    monkeypatch.setattr(reachability, "PATIENCE", {"default.api.timeout.ms": "40"})
    assert main(["pipeline", *command, "p", "--file", written(tmp_path)]) == 1
    assert "no Kafka broker answered within 40 ms (default.api.timeout.ms" in capsys.readouterr().err


def test_the_wait_is_short_if_no_address_accepts_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reachability.LISTENING_SECONDS + topics.ABSENT_MS / 1000 <= 5
    monkeypatch.setattr(reachability, "LISTENING_SECONDS", 0.0)
    assert not reachability.has_listener({"bootstrap.servers": "127.0.0.1:1,"})
    with socket.create_server(("127.0.0.1", 0)) as silent:
        servers = f"ssl://127.0.0.1:1, SSL://127.0.0.1:{silent.getsockname()[1]}"
        assert reachability.has_listener({"bootstrap.servers": servers, "security.protocol": "ssl"})


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_file_may_have_another_patience(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, **{"default.api.timeout.ms": "30"})
    assert main(["pipeline", *command, "p", "--file", file]) == 1
    assert "no Kafka broker answered within 30 ms (default.api.timeout.ms" in capsys.readouterr().err
