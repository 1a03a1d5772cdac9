"""The plugin pauses processes that a test starts if the option is set, and they continue later."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
WATCHER = """
import subprocess
import sys

import psutil
import pytest

from tests.patience import eventually


@pytest.fixture
def child():
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        yield psutil.Process(process.pid)
        process.kill()


def test_it_is_paused_and_continues(child):
    for _ in range(2):
        eventually(lambda: child.status() == psutil.STATUS_STOPPED)
        eventually(lambda: child.status() != psutil.STATUS_STOPPED)
"""


@pytest.mark.parametrize("how", [["-p", "no:xdist"], ["--numprocesses", "2"]], ids=["by itself", "in processes"])
def test_processes_of_a_test_are_paused_and_continue(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, how: list[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makepyfile(WATCHER)
    result = pytester.runpytest_subprocess("-p", "tests.unsteady", "--unsteady", *how, timeout=300)
    result.assert_outcomes(passed=1)
