"""The archive of Java's classes, as Java takes it: whole, cut off, and none at all."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ottla.pipelines.archived_run import try_it
from tools.class_archive import class_archive

pytestmark = [pytest.mark.behaviour("D1"), pytest.mark.usefixtures("quick_drivers")]


def part_of_a_whole(folder: Path, size_bytes: int) -> Path:
    part = folder / "cut.jsa"
    with class_archive().open("rb") as whole:
        part.write_bytes(whole.read(size_bytes))
    return part


def test_one_of_which_java_would_die_is_noticed_before_it_is_published(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        try_it(part_of_a_whole(tmp_path, 5_000_000))


@pytest.mark.parametrize("size_bytes", [0, 100])
def test_one_without_a_head_costs_time_alone(tmp_path: Path, size_bytes: int) -> None:
    try_it(part_of_a_whole(tmp_path, size_bytes))


def test_a_whole_one_is_taken() -> None:
    try_it(class_archive())
