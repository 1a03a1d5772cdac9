"""The Pythons that are promised are those that are tried."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).parent.parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSION = re.compile(r"Programming Language :: Python :: (\d+\.\d+)")


def promised() -> list[str]:
    """The versions that PyPI tells, the oldest first."""
    return [match[1] for text in PROJECT["classifiers"] if (match := VERSION.fullmatch(text))]


def test_each_that_is_promised_is_tried_and_no_other() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8"))
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == promised()
    assert PROJECT["requires-python"] == f">={promised()[0]}"


class Maker:
    """A `make` that says with which Python it was called for what, and fails at one target."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, failing: str) -> list[str]:
        make = self.folder / "make"
        make.write_text(f'#!/bin/sh\necho "$(basename $PYTHON): $1"\n[ "$1" != {failing} ]\n', encoding="utf-8")
        make.chmod(0o755)
        variables = os.environ | {"PATH": f"{self.folder}{os.pathsep}{os.environ['PATH']}"}
        variables.pop("PYTHON", None)
        done = subprocess.run([ROOT / ".ci" / "run"], env=variables, capture_output=True, text=True, check=False)
        assert (done.returncode != 0) == (failing not in ("nothing", "interop-needs")), done.stderr
        return [line for line in done.stdout.splitlines() if not line.startswith("==")]


def test_all_is_run_on_the_oldest_here_and_ends_with_what_fails(tmp_path: Path) -> None:
    oldest = subprocess.run(["sh", ROOT / "tools" / "oldest.sh"], capture_output=True, text=True, check=True).stdout
    if not oldest:
        pytest.skip("no Python here has its version in its name")
    targets = ("test", "test-newest", "lint", "interop-needs", "interop")
    steps = [f"{Path(oldest.strip()).name}: {target}" for target in targets]
    assert Maker(tmp_path).run("nothing") == steps
    assert Maker(tmp_path).run("interop-needs") == steps  # which interop asks for again
    assert Maker(tmp_path).run("test-newest") == steps[:2]
