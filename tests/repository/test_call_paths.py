"""The calls that ARCHITECTURE.md lists for three operations are made, in that order."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATHS = (ROOT / "ARCHITECTURE.md").read_text("utf-8").split("## Three operations, call by call")[1].split("\n## ")[0]
DIAGRAMS = dict(zip(("produce", "join", "create-topics"), re.findall(r"```\n(.*?)```", PATHS, re.DOTALL), strict=True))
CALL = re.compile(r"(\S+\.py) (\S+)")
SECONDS = 120


@pytest.mark.parametrize("operation", DIAGRAMS)
def test_the_listed_calls_of_an_operation_are_made_in_their_order(operation: str) -> None:
    listed = [" ".join(call) for call in CALL.findall(DIAGRAMS[operation])]
    assert len(listed) == len(DIAGRAMS[operation].splitlines())

    command = [sys.executable, "-m", "tools.call_trace", operation, "--calls"]
    traced = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=True)
    calls = traced.stdout.splitlines()

    missing = [call for call in listed if call not in calls]
    assert not missing, "ARCHITECTURE.md lists calls that are not made: " + ", ".join(missing)
    following = iter(calls)
    reached = [call for call in listed if call in following]
    assert reached == listed, "ARCHITECTURE.md lists these calls in another order"
