"""`ottla cluster start`: a cluster on this machine, from the shell."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla import Admin
from ottla.free_ports import free_port
from tests.cli.conftest import ottla, start
from tests.patience import eventually

pytestmark = pytest.mark.heavy


def test_it_reports_when_all_nodes_answer_and_which_node_ended_and_stops_at_ctrl_c(tmp_path: Path) -> None:
    port = free_port()
    running = start("cluster", "start", "--listen", f"127.0.0.1:{port}", "--data-dir", tmp_path / "kept")
    assert running.stdout is not None
    assert running.stderr is not None
    try:
        ready = [running.stdout.readline() for _ in range(3)]
        assert ready == [f"ready 127.0.0.1:{port + each}\n" for each in range(3)]
        processes = dict(re.findall(r"node (\d) is process (\d+)", read_lines_until(running.stderr, "Ctrl-C")))
        with Admin(bootstrap_servers=f"127.0.0.1:{port}") as admin:
            assert {node.node_id for node in admin.describe_cluster().nodes} == {1, 2, 3}
        os.kill(int(processes["2"]), signal.SIGKILL)
        assert "node 2 has stopped" in read_lines_until(running.stderr, "majority")
    finally:
        running.send_signal(signal.SIGINT)
        _, rest = running.communicate(timeout=60)
    assert running.returncode == 0
    assert "ottla cluster: stopping\n" in rest
    assert "Traceback" not in rest
    eventually(lambda: not any(is_there(int(process)) for process in processes.values()))


@pytest.mark.parametrize(
    ("started", "send", "number"),
    [(1, os.killpg, signal.SIGINT), (3, os.killpg, signal.SIGINT), (2, os.kill, signal.SIGTERM)],
    ids=["Ctrl-C, early", "Ctrl-C", "SIGTERM"],
)
def test_a_signal_during_the_start_ends_all_nodes_silently(
    started: int, send: Callable[[int, int], None], number: int, tmp_path: Path
) -> None:
    """Send a signal: a terminal sends Ctrl-C to all processes, and a supervisor sends SIGTERM to one."""
    arguments = ("cluster", "start", "--listen", f"127.0.0.1:{free_port()}")
    running = start(*arguments, apart=True, TMPDIR=str(tmp_path))
    try:
        eventually(lambda: len(in_session(running.pid)) > started)
        nodes = in_session(running.pid)
    finally:
        send(running.pid, number)
        _, said = running.communicate(timeout=60)
    assert running.returncode == 128 + number
    assert said == "ottla cluster: no --data-dir: topics are deleted when the cluster stops\n"
    eventually(lambda: not any(map(is_there, nodes)))
    assert list(tmp_path.iterdir()) == []


def in_session(leader: int) -> list[int]:
    """Return the processes of the session, with its leader."""
    there = (path for path in Path("/proc").iterdir() if path.name.isdecimal())
    return [int(path.name) for path in there if session_of(path) == leader]


def session_of(process: Path) -> int:
    """Return the session id of a running process, or 0 if it has ended."""
    try:
        state, _, _, session, *_ = (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if state == "Z" else int(session)


def test_impossible_arguments_are_a_clear_error() -> None:
    result = ottla("cluster", "start", "0")
    assert (result.status, "brokers = 0: must be between 1 and 20" in result.err) == (2, True)
    result = ottla("cluster", "start", "--set", "num.partition=3")
    assert result.status != 0
    assert "did you mean 'num.partitions'?" in result.err
    assert "Traceback" not in result.err


def read_lines_until(stream: object, word: str) -> str:
    """The lines up to one with that word."""
    lines = ""
    while word not in lines:
        line = stream.readline()  # type: ignore[attr-defined]
        assert line, lines
        lines += line
    return lines


def is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
