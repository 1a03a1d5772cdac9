"""Starting Apache Kafka on a machine that lacks what it needs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ottla.free_ports import free_port
from rivals import apache_kafka as rival


def test_without_maven_the_remedy_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(rival, "JARS", tmp_path / "jars")
    with pytest.raises(RuntimeError, match=r"^mvn not found, .* install Maven"):
        rival.fetch()


def test_jars_that_are_there_need_no_maven(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(rival, "JARS", tmp_path)
    (tmp_path / "kafka_2.13-4.4.0.jar").touch()
    rival.fetch()


def test_without_java_the_remedy_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"^java not found, .* install Java 17"), rival.apache_kafka():
        pass


def test_a_command_that_fails_shows_what_it_printed() -> None:
    with pytest.raises(RuntimeError, match="failed:\nout of luck"):
        rival.run([sys.executable, "-c", "print('out of luck'); raise SystemExit(3)"])


def test_a_port_without_kafka_does_not_answer() -> None:
    port = free_port()
    assert not rival.answers(port)
