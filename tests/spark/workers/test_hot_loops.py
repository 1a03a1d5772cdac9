"""Ottla shipped as an archive of sources, which Python cannot load compiled modules from."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import ottla

PROGRAM = (
    "import logging; logging.basicConfig(); from ottla.spark.workers.hot_loops import warn_if_slow; warn_if_slow()"
)
SOURCES = Path(ottla.__file__).parent


def read_notice(*paths: Path) -> str:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    return done.stderr


def test_a_program_in_an_archive_reports_what_to_ship(tmp_path: Path) -> None:
    archive = tmp_path / "ottla.zip"
    with zipfile.ZipFile(archive, "w") as files:
        for source in SOURCES.rglob("*.py"):
            files.write(source, source.relative_to(SOURCES.parent))
    assert f"running from the archive {archive}, from which Python cannot load compiled hot loops" in read_notice(
        archive
    )
