"""Recorded results of Java's assignors for some dozen groups; `interop/test_assignors.py` compares thousands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.client.consumer.assignors.choice import KNOWN, create_by_name
from tests.client.consumer.assignors.cases import Case, format_shares, parse

GOLDENS = Path(__file__).with_name("goldens.txt")


def goldens() -> Iterator[tuple[Case, str]]:
    """The cases with their answers."""
    lines: list[str] = []
    for line in GOLDENS.read_text(encoding="utf-8").splitlines():
        if line.startswith("answer\t"):
            yield parse(lines), line.removeprefix("answer\t")
            lines = []
        elif not line.startswith("#"):
            lines.append(line)


@pytest.mark.behaviour("C13")
@pytest.mark.parametrize("name", KNOWN)
def test_a_group_gets_the_same_assignment_as_from_java(name: str) -> None:
    mine = [(case, answer) for case, answer in goldens() if case.assignor == name]
    assert len(mine) == 12
    for case, answer in mine:
        assert format_shares(case.shares(create_by_name(name))) == answer, "\n".join(case.lines())


def test_a_case_is_read_as_it_was_written() -> None:
    for case, _ in goldens():
        assert parse(case.lines()).lines() == case.lines()
