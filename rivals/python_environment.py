"""Python environments in `.cache` for packages that are not requirements of ours."""

from __future__ import annotations

import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

from rivals.one_at_a_time import one_at_a_time

CACHE = Path(__file__).parents[1] / ".cache"


def python_with(packages: Sequence[str], folder: str, title: str) -> Path:
    """Return the Python of the environment `.cache/FOLDER` with these packages; create or update it if necessary."""
    home = CACHE / folder
    python, done = home / "bin" / "python", home / "ready"
    wanted = "\n".join(packages)
    with one_at_a_time(home):
        if not done.exists() or done.read_text(encoding="utf-8") != wanted:
            print(f"setting up {title} in {home}", file=sys.stderr)
            venv.create(home, with_pip=True, clear=True)
            subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
            done.write_text(wanted, encoding="utf-8")
    return python
