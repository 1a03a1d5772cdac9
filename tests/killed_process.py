"""Programs that end themselves by SIGKILL at their n-th step."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
SECONDS = 120


def kill_at(steps: int) -> Callable[[object], None]:
    """Return a function that ends this process at its call number `steps`; with 0 it does nothing."""
    left = steps

    def step(_: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return step


def run_program(module: str, *words: object) -> int:
    """Run a module as a program with these arguments, and return its status."""
    return subprocess.run([sys.executable, "-m", module, *map(str, words)], cwd=ROOT, timeout=SECONDS).returncode
