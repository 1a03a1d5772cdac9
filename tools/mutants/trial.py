"""Runs tests in a process of their own, in the house, and says how it went.

Forked, so that what takes long to import is imported once; bounded in time and memory, because a mistake may make a
loop endless.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

import pytest

from tools.mutants.rooms import ROOT

MEMORY_BYTES = 4 << 30
HEAVY = ("hypothesis", "kio", "kafka", "pyarrow", "cramjam", "unittest.mock", "asyncio", "xml.dom.minidom")
"""Modules outside of the room that its tests import."""


class Limits(NamedTuple):
    """How long a trial may take, in seconds."""

    cpu: float
    wall: float

    @classmethod
    def for_tests(cls, seconds: float) -> Limits:
        """Generous: the machine may be busy, and a mistake that only slows is none."""
        return cls(10 + 4 * seconds, 40 + 12 * seconds)


def run_tests(
    house: Path, tests: Sequence[str], plugins: Sequence[object], limits: Limits, log: Path, *, first_only: bool
) -> int | None:
    """Pytest's exit code over these files; None where it took too long."""
    arguments = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly", "--no-header", "--tb=line"]
    arguments += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of what was imported before
    stop = ["-x"] if first_only else []
    return in_child(lambda: pytest.main([*arguments, *stop, *tests], [Fixed(), *plugins]), house, limits, log)


def in_child(work: Callable[[], int], house: Path, limits: Limits, log: Path) -> int | None:
    """Return the result of `work` in a child process."""
    sys.stdout.flush()
    child = os.fork()
    if not child:
        run_child(work, house, limits, log)
    end = time.monotonic() + limits.wall
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            swept(child)
            return None if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU else exit_code(status)
        time.sleep(0.02)
    swept(child)
    os.waitpid(child, 0)
    return None


def exit_code(status: int) -> int:
    return os.waitstatus_to_exitcode(status)


def swept(child: int) -> None:
    """End what the child has started, and itself."""
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run_child(work: Callable[[], int], house: Path, limits: Limits, log: Path) -> NoReturn:
    code = 1
    try:
        os.setpgid(0, 0)
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (int(limits.cpu) + 1, int(limits.cpu) + 5))
        sys.path.insert(0, str(house))
        sys.dont_write_bytecode = True
        os.environ.update(PYTHONPATH=str(house), PYTHONDONTWRITEBYTECODE="1")
        os.chdir(ROOT)
        code = int(work())
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


class Fixed:
    """The same examples in every run, and none kept from one to the next."""

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", deadline=None, derandomize=True, database=None, phases=phases)
        settings.load_profile("mutants")


def warm_up() -> None:
    """Import what every trial would import again."""
    for name in HEAVY:
        try:
            __import__(name)
        except ImportError:
            pass
    assert not any(name.partition(".")[0] == "ottla" for name in sys.modules), "the house is to be imported, not this"
