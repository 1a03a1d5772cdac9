"""Every chapter of the tour, played to its end by the process that the console starts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ottla.tour.chapters import CHAPTERS
from tests.patience import PATIENCE

pytestmark = pytest.mark.heavy

COMMAND = (sys.executable, "-m", "ottla.tour")


def played(name: str, goes_on: str = "\n" * 9) -> list[Any]:
    """Return the events of a chapter, continuing at once after each step."""
    run = subprocess.run(
        [*COMMAND, name], input=goes_on, capture_output=True, text=True, timeout=3 * PATIENCE, check=True
    )
    return [json.loads(line) for line in run.stdout.splitlines()]


SAID = {
    "static-member": (3, "was 2 before and is 2 now"),  # it came back without a rebalance
    "retry": (3, "ends at offset 2"),  # the record that was sent twice is there once
}
"""A text that a chapter prints only if its steps succeeded."""


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_has_three_steps_or_more_succeeds_and_ends(name: str) -> None:
    *steps, last = played(name)
    assert last == {"ended": True}
    assert [each["step"] for each in steps] == list(range(1, len(steps) + 1))
    assert len(steps) >= 3
    assert {each["look"] for each in steps} <= {"reader-1", "reader-2", "writer"}
    number, words = SAID.get(name, (1, ""))
    assert words in steps[number - 1]["text"]


def test_a_chapter_stops_when_its_reader_disconnects() -> None:
    (step,) = played("first-poll", "")
    assert step["step"] == 1


def test_without_a_name_the_chapters_are_listed_and_an_unknown_name_is_rejected(tmp_path: Path) -> None:
    listed = subprocess.run(COMMAND, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert [each["name"] for each in json.loads(listed.stdout)["chapters"]] == list(CHAPTERS)
    refused = subprocess.run([*COMMAND, "nowhere"], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (
        refused.returncode,
        refused.stderr.startswith("there is no chapter 'nowhere': expected one of first-poll, "),
    ) == (1, True)
