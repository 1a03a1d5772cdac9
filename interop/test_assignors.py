"""Our assignors compute the same assignments as Java's, so a mixed group is stable with either leader."""

from __future__ import annotations

from random import Random

import pytest

from interop.assignors import compute_java_assignments
from ottla.client.consumer.assignors.choice import KNOWN, create_by_name
from tests.client.consumer.assignors.cases import Case, format_shares, random_case, read_shares

SMALL, LARGE = 2000, 25


@pytest.fixture(scope="module")
def answered() -> list[tuple[Case, str]]:
    """Thousands of groups for each assignor with Java's assignments, all computed in one run."""
    chance = Random(5)
    cases = [random_case(name, chance) for name in KNOWN for _ in range(SMALL)]
    cases += [random_case(name, chance, scale=20) for name in KNOWN for _ in range(LARGE)]
    return list(zip(cases, compute_java_assignments(cases), strict=True))


@pytest.mark.behaviour("C13")
@pytest.mark.parametrize("name", KNOWN)
def test_the_same_group_receives_the_same_assignment_as_in_java(answered: list[tuple[Case, str]], name: str) -> None:
    mine = [(case, answer) for case, answer in answered if case.assignor == name]
    assert len(mine) == SMALL + LARGE
    for case, answer in mine:
        assert format_shares(case.shares(create_by_name(name))) == format_shares(read_shares(answer)), "\n".join(
            case.lines()
        )
