"""`ottla` as a person runs it: processes, their output and their exit status."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ottla.compiled import uncompiled_modules
from tests.cli.forked import forks

PATIENCE = 60.0
OTTLA = [sys.executable, "-W", "error", "-m", "ottla.cli.main"]
NOWHERE = os.path.join(os.sep, "no", "such", "folder")
"""Replace the folder of contexts of the user that runs the tests."""
ENVIRONMENT = {**os.environ, "PYTHONUNBUFFERED": "", "XDG_CONFIG_HOME": NOWHERE}
UNCOMPILED = re.compile(r"^.* WARNING running without compiled hot loops .*\n", re.MULTILINE)


@pytest.fixture(autouse=True)
def no_contexts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the user's contexts: a test that needs contexts creates them."""
    monkeypatch.setenv("XDG_CONFIG_HOME", NOWHERE)
    monkeypatch.delenv("OTTLA_CONTEXT", raising=False)


CREATED = re.compile(r"^\S+ \S+ INFO created data directory .*\n", re.MULTILINE)
STARTING = re.compile(r"\A\S+ \S+ INFO starting version=.*\n")


class Finished(NamedTuple):
    """A command that has ended."""

    status: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """The error message: exactly one line. A broker with a file of settings logs before it that it starts."""
        err = STARTING.sub("", self.err)
        assert err.startswith("ottla: "), self.err
        assert err.count("\n") == 1, self.err
        return err.removeprefix("ottla: ").rstrip()


def start(*arguments: object, apart: bool = False, **environment: str) -> subprocess.Popen[str]:
    """Start `ottla …` with pipes; `apart` starts it in a session of its own, so that a signal can be sent to all its processes."""
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [*OTTLA, *map(str, arguments)],
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        text=True,
        env=ENVIRONMENT | environment,
        start_new_session=apart,
    )


def ottla(*arguments: object, stdin: str = "") -> Finished:
    """Run `ottla …` to its end in a fork of a process that has imported it."""
    return Finished(*forks().run([*map(str, arguments)], stdin.encode(), ENVIRONMENT, PATIENCE))


def strip_warning(err: str) -> str:
    """Return a broker's output without the line about a new data directory and the warning about uncompiled hot loops.

    Assert that the latter was printed once if due.
    """
    rest, count = UNCOMPILED.subn("", CREATED.sub("", err))
    assert count == (1 if uncompiled_modules() else 0), err
    return rest


class RunningBroker:
    """`ottla broker`, ready."""

    def __init__(self, data_dir: Path, *arguments: str, listen: str = "127.0.0.1:0") -> None:
        self.process = start("broker", "--listen", listen, "--data-dir", data_dir, *arguments)
        assert self.process.stdout is not None
        word, _, self.address = self.process.stdout.readline().strip().partition(" ")
        assert word == "ready", self.process.communicate(timeout=PATIENCE)

    def end(self, signal_number: int) -> Finished:
        """Send a signal and wait for the end."""
        self.process.send_signal(signal_number)
        out, err = self.process.communicate(timeout=PATIENCE)
        return Finished(self.process.returncode, out, strip_warning(err))

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=PATIENCE)


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker without access control."""
    settings = (
        "--set",
        "group.initial.rebalance.delay.ms=0",
        "--set",
        "log.retention.ms=-1",
    )  # records of any age stay
    broker = RunningBroker(tmp_path_factory.mktemp("broker"), *settings)
    yield broker.address
    broker.kill()


@pytest.fixture
def topic() -> str:
    """An unused topic name."""
    return f"topic-{uuid.uuid4().hex[:8]}"
