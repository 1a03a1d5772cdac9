"""Ctrl-C ends the demo and all processes that it started, and a missing Java is reported at once."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from examples import flights
from tests.patience import eventually

pytestmark = pytest.mark.heavy

PROGRAM = [sys.executable, "-m", "examples.flights"]


def started() -> subprocess.Popen[str]:
    return subprocess.Popen(PROGRAM, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_an_interrupt_while_spark_runs_leaves_nothing_behind() -> None:
    demo = started()
    family: set[psutil.Process] = set()

    def spark_is_up() -> bool:
        family.update(psutil.Process(demo.pid).children(recursive=True))
        return any(process.is_running() and "java" in process.name() for process in family)

    eventually(spark_is_up)
    demo.send_signal(signal.SIGINT)
    said, _ = demo.communicate(timeout=60)
    assert demo.returncode == 130
    assert said.splitlines()[-1] == "stopped; the broker and Spark have ended too"
    assert "Traceback" not in said
    _, alive = psutil.wait_procs(family, timeout=20)
    assert not alive


def test_an_interrupt_while_it_is_still_loading_is_one_line() -> None:
    demo = started()
    eventually(lambda: is_caught(demo.pid, signal.SIGINT))
    demo.send_signal(signal.SIGINT)
    said, _ = demo.communicate(timeout=60)
    assert (demo.returncode, said) == (130, "stopped; the broker and Spark have ended too\n")


@pytest.mark.parametrize("moment", ["stop(2, None)", "eval('stop(2, None)')"], ids=["by_itself", "in_a_text"])
def test_whatever_a_library_is_at_when_it_is_interrupted_the_status_is_the_same(tmp_path: Path, moment: str) -> None:
    folder = tmp_path / "examples" / "flights"
    folder.mkdir(parents=True)
    shutil.copy(Path(flights.__file__).with_name("__main__.py"), folder)
    (folder / "demo.py").write_text(f"from __main__ import stop\n{moment}")
    done = subprocess.run(PROGRAM, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (130, "stopped; the broker and Spark have ended too\n")


def is_caught(pid: int, number: signal.Signals) -> bool:
    """True if the process has its own handler for the signal; Python has one for SIGINT from the start."""
    caught = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigCgt"))
    wanted = (1 << number - 1) | (1 << signal.SIGTERM - 1)
    return int(caught.split()[1], 16) & wanted == wanted


def test_a_machine_without_java_is_reported_so_before_anything_starts() -> None:
    done = subprocess.run(
        PROGRAM, env=os.environ | {"PATH": "/nowhere", "JAVA_HOME": ""}, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stdout.startswith("Spark needs Java 17 or later, and there is no java on the PATH; install a Java")
    assert done.stderr == ""
