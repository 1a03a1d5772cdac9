"""README for who has nothing but what its text names: the blocks in an environment that has just been made.

Needs the network, for pip; what needs Spark runs in `tests/spark/test_readme.py`, beside a Spark that is there.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repository.readme import README, ROOT
from tests.repository.test_readme import read_through


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with what README's text names: the first extra, and the one of the data frame."""
    folder: Path = tmp_path_factory.mktemp("fresh")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    first, frame = re.findall(r"pip install '(\.\[(?:arrow|pandas)\])'", README)
    for wanted in (first, frame):
        # Compiled or not makes no difference to what a block says; that wheels are compiled `make wheels` sees to.
        pip(folder, "install", str(ROOT) + wanted.removeprefix("."))
    return folder / "bin" / "python"


def pip(folder: Path, *arguments: str) -> None:
    command = ["env", "OTTLA_COMPILE=no", str(folder / "bin" / "python"), "-m", "pip", "--quiet", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_reader_who_has_just_what_readme_names_gets_what_it_says(fresh: Path, tmp_path: Path) -> None:
    read_through(tmp_path, str(fresh))
