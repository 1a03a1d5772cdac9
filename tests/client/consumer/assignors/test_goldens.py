"""What Java's assignors made of some dozen groups each, kept; `interop/test_assignors.py` asks them of thousands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.client.consumer.assignors.choice import KNOWN, named
from tests.client.consumer.assignors.cases import Case, parse, tell_shares

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
def test_a_group_is_given_what_java_gives_it(name: str) -> None:
    mine = [(case, answer) for case, answer in goldens() if case.assignor == name]
    assert len(mine) == 12
    for case, answer in mine:
        assert tell_shares(case.shares(named(name))) == answer, "\n".join(case.lines())


def test_a_case_is_read_as_it_was_written() -> None:
    for case, _ in goldens():
        assert parse(case.lines()).lines() == case.lines()
