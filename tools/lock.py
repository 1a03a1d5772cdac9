"""Writes constraints.txt: the exact version of everything in .venv, so that installs repeat."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HEADER = "# The versions that are tested together, for Python 3.11 to 3.13; written by `make lock`.\n"
FREEZE = (
    sys.executable,
    "-m",
    "pip",
    "freeze",
    "--all",
    "--exclude-editable",
    "--exclude",
    "pip",
    "--exclude",
    "ottla",
)

frozen = subprocess.run(FREEZE, check=True, capture_output=True, text=True).stdout
Path("constraints.txt").write_text(HEADER + frozen, encoding="utf-8")
