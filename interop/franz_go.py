"""A client with franz-go, and franz-go's own tests, which are only available from the Go module proxy. Compiled once."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

from rivals.apache_kafka import ROOT

SOURCE = Path(__file__).with_name("go")
PROGRAM = ROOT / ".cache" / "franz-go" / "client"
TESTS = PROGRAM.with_name("kgo.test")
"""The tests of franz-go's client, compiled from the sources in its module."""
TESTED = "github.com/twmb/franz-go/pkg/kgo"
PATIENCE = 180.0


@functools.cache
def missing() -> str:
    """Return the reason why franz-go is unavailable here, or "" if it is available. Compiles it if necessary."""
    return compile_with("build", "-buildvcs=false", "-o", str(PROGRAM), ".")


@functools.cache
def missing_tests() -> str:
    """Return the same for franz-go's own tests."""
    return compile_with("test", "-c", "-o", str(TESTS), TESTED)


def compile_with(*arguments: str) -> str:
    """Run `go` in our module, and return the reason why it failed, or ""."""
    if shutil.which("go") is None:
        return "there is no Go here, which franz-go is compiled by: install it to have franz-go tried as well"
    environment = os.environ | {"GOTOOLCHAIN": "local"}
    try:
        done = subprocess.run(
            ["go", *arguments],
            cwd=SOURCE,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "Go does not bring and compile franz-go in three minutes: it is not tried"
    if done.returncode:
        return f"Go does not compile franz-go, which is therefore not tried: {done.stderr.strip()}"
    return ""
