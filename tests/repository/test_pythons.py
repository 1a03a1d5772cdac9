"""The documented Python versions are those that are tested."""

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
    """Return the Python versions in the classifiers for PyPI, the oldest first."""
    return [match[1] for text in PROJECT["classifiers"] if (match := VERSION.fullmatch(text))]


def test_exactly_the_documented_versions_are_tested() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8"))
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == promised()
    assert PROJECT["requires-python"] == f">={promised()[0]}"


class Maker:
    """A `make` that prints the Python and the target of each call, and fails at one target."""

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


def test_all_targets_run_on_the_oldest_python_and_stop_at_the_first_failure(tmp_path: Path) -> None:
    oldest = subprocess.run(["sh", ROOT / "tools" / "oldest.sh"], capture_output=True, text=True, check=True).stdout
    if not oldest:
        pytest.skip("no Python here has its version in its name")
    targets = ("test", "test-newest", "lint", "interop-needs", "interop", "test-heavy")
    steps = [f"{Path(oldest.strip()).name}: {target}" for target in targets]
    assert Maker(tmp_path).run("nothing") == steps
    assert Maker(tmp_path).run("interop-needs") == steps  # which interop asks for again
    assert Maker(tmp_path).run("test-newest") == steps[:2]
    assert Maker(tmp_path).run("interop") == steps
    assert Maker(tmp_path).run("test-heavy") == steps
