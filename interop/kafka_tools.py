"""Kafka's own command line tools, in Java."""

from __future__ import annotations

import subprocess
from pathlib import Path

from rivals.apache_kafka import java

TOOLS = "org.apache.kafka.tools"
PATIENCE = 60.0


def tool(name: str, *arguments: object, stdin: str = "") -> str:
    """What a tool prints on standard output; it must succeed."""
    command = java(f"{TOOLS}.{name}", *map(str, arguments))
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, f"{name} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


def dump(file: Path, *arguments: str) -> str:
    """What DumpLogSegments makes of one of our files."""
    return tool("DumpLogSegments", "--files", file, *arguments)
