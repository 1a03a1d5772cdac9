"""`ottla users`: setting, changing and deleting passwords, which never appear in a list of processes."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla import Admin, Broker, SaslAuthenticationError
from ottla.cli.main import main
from tests.cli.conftest import ENVIRONMENT, OTTLA, PATIENCE, Finished, ottla


@pytest.fixture
def broker() -> Iterator[Broker]:
    """A broker that requires a login."""
    with Broker(listen="SASL_PLAINTEXT://127.0.0.1:0", users={"admin": "of-admin"}) as broker:
        yield broker


@pytest.fixture
def at(broker: Broker, tmp_path: Path) -> tuple[str, ...]:
    """Return the options to log in as the admin of a broker."""
    file = tmp_path / "admin.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in as_user(broker, "admin", "of-admin").items()))
    return ("--command-config", str(file))


def as_user(broker: Broker, name: str, password: str, mechanism: str = "SCRAM-SHA-512") -> dict[str, Any]:
    return {
        "bootstrap.servers": broker.bootstrap_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": name,
        "sasl.password": password,
    }


def may_log_in(broker: Broker, name: str, password: str, mechanism: str = "SCRAM-SHA-512") -> bool:
    with Admin({**as_user(broker, name, password, mechanism), "default.api.timeout.ms": 20_000}) as admin:
        try:
            admin.describe_cluster()
        except SaslAuthenticationError:
            return False
    return True


def listed(at: tuple[str, ...], name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(ottla("users", "list", "--json", *at).out)
    return [each for each in found if each["user"] == name]


def test_a_user_logs_in_with_the_new_password_and_not_with_the_old_one(broker: Broker, at: tuple[str, ...]) -> None:
    assert ottla("users", "add", "alice", "--password-stdin", *at, stdin="first\n") == (0, "", "")
    assert listed(at, "alice") == [{"user": "alice", "mechanism": "SCRAM-SHA-512", "iterations": 4096}]
    assert may_log_in(broker, "alice", "first")
    altered = ottla("users", "alter", "alice", "--password-stdin", "--iterations", 8192, *at, stdin="second")
    assert altered == (0, "", "")
    assert listed(at, "alice")[0]["iterations"] == 8192
    assert not may_log_in(broker, "alice", "first")
    assert may_log_in(broker, "alice", "second")
    ottla("users", "alter", "alice", "--password-stdin", *at, stdin="third")
    assert listed(at, "alice")[0]["iterations"] == 8192
    assert ottla("users", "delete", "alice", "--yes", *at) == (0, "", "")
    assert listed(at, "alice") == []
    assert not may_log_in(broker, "alice", "second")


def test_both_scram_mechanisms_are_set_and_deleted_separately(
    broker: Broker, at: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OF_BOB", "s3cr3t")
    both = ("--mechanism", "SCRAM-SHA-256", "--mechanism", "scram-sha-512")
    assert main(["users", "add", "bob", *both, "--password-env", "OF_BOB", *at]) == 0
    assert main(["users", "delete", "bob", "--mechanism", "SCRAM-SHA-256", "--yes", *at]) == 0
    capsys.readouterr()
    assert main(["users", "describe", "bob", *at]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [["USER", "MECHANISM", "ITERATIONS"], ["bob", "SCRAM-SHA-512", "4096"]]
    assert may_log_in(broker, "bob", "s3cr3t")
    assert not may_log_in(broker, "bob", "s3cr3t", "SCRAM-SHA-256")
    assert main(["users", "delete", "bob", "--mechanism", "SCRAM-SHA-256", "--yes", *at]) == 1
    assert "'bob' has no password for SCRAM-SHA-256, only for SCRAM-SHA-512" in capsys.readouterr().err


def test_in_a_terminal_the_password_is_asked_for_twice_and_not_shown(broker: Broker, at: tuple[str, ...]) -> None:
    shown = in_a_terminal("users", "add", "carol", *at, answers=("typed", "typed"))
    assert "typed" not in shown
    assert may_log_in(broker, "carol", "typed")


def in_a_terminal(*words: str, answers: tuple[str, ...]) -> str:
    """Return the terminal output of a command, with these answers typed at its prompts."""
    master, slave = pty.openpty()
    process = subprocess.Popen([*OTTLA, *words], stdin=slave, stdout=slave, stderr=slave, env=ENVIRONMENT)
    os.close(slave)
    shown = b""
    for number, answer in enumerate(answers, 1):
        while shown.count(b": ") < number:
            shown += os.read(master, 1000)
        os.write(master, answer.encode() + b"\n")
    try:
        while piece := os.read(master, 1000):
            shown += piece
    except OSError:  # the other end is closed
        pass
    assert process.wait(PATIENCE) == 0, shown
    os.close(master)
    return shown.decode()


def refused(*words: object, stdin: str = "") -> Finished:
    finished = ottla(*words, stdin=stdin)
    assert finished.out == ""
    return finished


def test_mistakes_are_clear_error_messages(at: tuple[str, ...]) -> None:
    nobody = refused("users", "add", "dan", *at)
    assert (nobody.status, "no terminal to enter the password of 'dan'" in nobody.sentence) == (1, True)
    twice = refused("users", "add", "dan", "--password-stdin", "--insecure-password", "s3cr3t", *at)
    assert (twice.status, "exclude each other" in twice.sentence, "s3cr3t" in twice.sentence) == (2, True, False)
    empty = refused("users", "add", "dan", "--password-stdin", *at)
    assert (empty.status, "standard input: the password is empty" in empty.sentence) == (2, True)
    missing = refused("users", "add", "dan", "--password-env", "NO_SUCH", *at)
    assert (missing.status, "the variable is not set" in missing.sentence) == (2, True)
    assert ottla("users", "add", "dan", "--insecure-password", "x", *at).status == 0
    again = refused("users", "add", "dan", "--insecure-password", "x", *at)
    assert (again.status, "change it with: ottla users alter dan" in again.sentence) == (1, True)
    unknown = refused("users", "alter", "dna", "--insecure-password", "x", *at)
    assert (unknown.status, "unknown user 'dna'; did you mean 'dan'?" in unknown.sentence) == (1, True)
    unasked = refused("users", "delete", "dan", *at)
    assert (unasked.status, "add --yes" in unasked.sentence) == (1, True)
    stranger = refused("users", "describe", "erin", *at)
    assert (stranger.status, "'erin' has no SCRAM" in stranger.sentence) == (1, True)
