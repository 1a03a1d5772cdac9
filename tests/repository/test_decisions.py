"""Decision records have a number, a title and a status, and their index lists each of them by topic."""

from __future__ import annotations

import re

from tests.repository.readme import ROOT

FOLDER = ROOT / "docs" / "decisions"
RECORDS = {path.name: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("0*.md"))}
HEAD = re.compile(r"# (\d{4}) (.+)\n\n\*\*Status:\*\* (accepted|superseded by )")


def test_a_record_starts_with_number_title_and_status() -> None:
    assert [name for name, text in RECORDS.items() if not HEAD.match(text)] == []
    assert [name for name, text in RECORDS.items() if text[2:6] != name[:4]] == []
    assert len({name[:4] for name in RECORDS}) == len(RECORDS), "two records have one number"


def test_the_index_lists_each_record_once_with_its_title() -> None:
    listed = re.findall(r"^\| (\d{4}) \| \[(.+)\]\((.+)\) \|", (FOLDER / "README.md").read_text(encoding="utf-8"), re.M)
    titles = [(text[2:6], text.split("\n", 1)[0][7:], name) for name, text in RECORDS.items()]
    assert sorted(listed) == titles


def test_a_superseded_record_names_its_successor_which_names_it() -> None:
    for name, text in RECORDS.items():
        for successor in re.findall(r"\]\((0\d{3}-[\w-]+\.md)\)", text.split("\n", 4)[2].partition("superseded by")[2]):
            assert name[:4] in RECORDS[successor], f"{successor} does not name {name}"
