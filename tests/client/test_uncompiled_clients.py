"""Clients of an uncompiled install log once that they are slow, with the remedy."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ottla

MADE = """
from ottla import Consumer, Producer
for _ in range(2):
    Producer(bootstrap_servers="127.0.0.1:1").close()
    Consumer(bootstrap_servers="127.0.0.1:1").close()
"""


@pytest.mark.parametrize("first", ["Consumer", "Producer"])
def test_the_first_client_of_an_uncompiled_install_logs_one_line_with_the_remedy(tmp_path: Path, first: str) -> None:
    source = Path(ottla.__file__).parent
    shutil.copytree(source, tmp_path / "ottla", ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
    script = f"from ottla import {first}\n{first}(bootstrap_servers='127.0.0.1:1').close()\n{MADE}"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
    )
    lines = [line for line in done.stderr.splitlines() if "hot loops" in line]
    assert len(lines) == 1, done.stderr
    assert "several times slower" in lines[0]
    assert "pip install --force-reinstall --no-deps --no-cache-dir ." in lines[0]
