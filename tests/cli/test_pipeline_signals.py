"""Ctrl-C and SIGTERM while a command runs pipelines."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from ottla.cli.pipelines.signals import ended_by_signals
from tests.cli.conftest import ottla, start
from tests.patience import PATIENCE, eventually

pytestmark = pytest.mark.usefixtures("usual_signals")

FILE = """
settings: {{bootstrap.servers: "{servers}"}}
pipelines:
  copy:
    source: {{type: topic, topic: {topic}}}
    sink: {{type: topic, topic: {topic}-copy}}
"""


def interrupted_twice() -> None:
    with ended_by_signals():
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            signal.raise_signal(signal.SIGINT)


def test_before_the_start_the_first_signal_interrupts_and_later_ones_do_nothing() -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupted_twice()
    signal.raise_signal(signal.SIGINT)  # the command is still ending


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_after_the_start_both_signals_stop_it_any_number_of_times(number: signal.Signals) -> None:
    done: list[str] = []
    with ended_by_signals() as ending:
        ending.stop_with(lambda: done.append("stop"))
        signal.raise_signal(number)
        signal.raise_signal(number)
    assert done == ["stop", "stop"]


def test_unused_signal_handlers_are_restored() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with ended_by_signals() as ending:
        ending.stop_with(lambda: None)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is before


def processes(session: int) -> list[str]:
    """Return the names of the processes of a session."""
    names = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text(encoding="utf-8").partition("(")[2].rpartition(")")
        except (FileNotFoundError, ProcessLookupError):
            continue
        state, _, _, of = rest.split()[:4]
        if int(of) == session and state != "Z":
            names.append(name)
    return names


@pytest.mark.behaviour("D1")
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_ctrl_c_twice_while_java_starts_ends_it_without_a_traceback_and_leaves_nothing(
    address: str, topic: str, tmp_path: Path
) -> None:
    ottla("topics", "create", topic, "--bootstrap-server", address)
    file = tmp_path / "copy.yaml"
    file.write_text(FILE.format(servers=address, topic=topic), encoding="utf-8")
    run = start("pipeline", "run", file, apart=True)
    eventually(lambda: "java" in processes(run.pid) or run.poll() is not None)
    for _ in range(2):
        os.killpg(run.pid, signal.SIGINT)
    said = run.communicate(timeout=PATIENCE)[1]
    assert (run.returncode, "Traceback" in said) == (130, False), said
    eventually(lambda: not processes(run.pid))
