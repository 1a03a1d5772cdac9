"""The changelog has short lines, one heading for each kind of change, and the version of the package."""

from __future__ import annotations

import re

import ottla
from tests.repository.readme import ROOT

TEXT = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
KINDS = ["Added", "Changed", "Fixed", "Removed"]


def test_the_latest_version_is_that_of_the_package() -> None:
    versions = re.findall(r"^## (\d\S+) — \d{4}-\d\d-\d\d$", TEXT, re.MULTILINE)
    assert versions[0] == ottla.__version__


def test_a_change_is_one_line_of_at_most_25_words_that_names_its_component() -> None:
    changes = [line.removeprefix("* ") for line in TEXT.splitlines() if line.startswith("* ")]
    assert [line for line in changes if len(line.split()) > 25 or not re.match(r"[A-Z]\w+: ", line)] == []
    assert [line for line in TEXT.splitlines() if line.startswith(" ")] == [], "a change continues on a second line"


def test_unreleased_changes_are_listed_by_kind() -> None:
    unreleased = TEXT.split("## Unreleased\n")[1].split("\n## ")[0]
    assert re.findall(r"^### (.+)$", unreleased, re.MULTILINE) == KINDS
