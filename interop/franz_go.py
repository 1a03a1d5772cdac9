"""A client with franz-go, which is only available from the Go module proxy. Compiled once."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

from rivals.apache_kafka import ROOT

SOURCE = Path(__file__).with_name("go")
PROGRAM = ROOT / ".cache" / "franz-go" / "client"
PATIENCE = 180.0


@functools.cache
def missing() -> str:
    """Return the reason why franz-go is unavailable here, or "" if it is available. Compiles it if necessary."""
    if shutil.which("go") is None:
        return "there is no Go here, which franz-go is compiled by: install it to have franz-go tried as well"
    command = ["go", "build", "-buildvcs=false", "-o", str(PROGRAM), "."]
    environment = os.environ | {"GOTOOLCHAIN": "local"}
    try:
        done = subprocess.run(
            command, cwd=SOURCE, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return "Go does not bring and compile franz-go in three minutes: it is not tried"
    if done.returncode:
        return f"Go does not compile franz-go, which is therefore not tried: {done.stderr.strip()}"
    return ""
