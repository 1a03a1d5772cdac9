"""What a test starts stands still now and then where that is asked for, and goes on."""

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


def test_it_stands_still_and_goes_on(child):
    for _ in range(2):
        eventually(lambda: child.status() == psutil.STATUS_STOPPED)
        eventually(lambda: child.status() != psutil.STATUS_STOPPED)
"""


@pytest.mark.parametrize("how", [["-p", "no:xdist"], ["--numprocesses", "2"]], ids=["by itself", "in processes"])
def test_what_a_test_starts_stands_still_and_goes_on(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, how: list[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makepyfile(WATCHER)
    result = pytester.runpytest_subprocess("-p", "tests.unsteady", "--unsteady", *how, timeout=300)
    result.assert_outcomes(passed=1)
