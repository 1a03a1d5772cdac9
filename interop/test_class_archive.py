"""Java accepts the class archive if it is complete, and starts without it if it is truncated or missing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ottla.pipelines.archived_run import run_pipelines
from tools.class_archive import class_archive

pytestmark = [pytest.mark.behaviour("D1"), pytest.mark.usefixtures("quick_drivers")]


def part_of_a_whole(folder: Path, size_bytes: int) -> Path:
    part = folder / "cut.jsa"
    with class_archive().open("rb") as whole:
        part.write_bytes(whole.read(size_bytes))
    return part


def test_an_archive_that_crashes_java_is_detected_before_it_is_published(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        run_pipelines(part_of_a_whole(tmp_path, 5_000_000))


@pytest.mark.parametrize("size_bytes", [0, 100])
def test_an_archive_without_a_header_only_costs_time(tmp_path: Path, size_bytes: int) -> None:
    run_pipelines(part_of_a_whole(tmp_path, size_bytes))


def test_a_complete_archive_is_used() -> None:
    run_pipelines(class_archive())
