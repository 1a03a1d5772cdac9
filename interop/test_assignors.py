"""Our assignors share out as Java's do: a mixed group stays the same whoever leads it."""

from __future__ import annotations

from random import Random

import pytest

from interop.assignors import answers_of_java
from ottla.client.consumer.assignors.choice import KNOWN, named
from tests.client.consumer.assignors.cases import Case, random_case, read_shares, tell_shares

SMALL, LARGE = 2000, 25


@pytest.fixture(scope="module")
def answered() -> list[tuple[Case, str]]:
    """Thousands of groups for each assignor, and Java's answers, all in one run."""
    chance = Random(5)
    cases = [random_case(name, chance) for name in KNOWN for _ in range(SMALL)]
    cases += [random_case(name, chance, scale=20) for name in KNOWN for _ in range(LARGE)]
    return list(zip(cases, answers_of_java(cases), strict=True))


@pytest.mark.behaviour("C13")
@pytest.mark.parametrize("name", KNOWN)
def test_the_same_group_is_given_the_same_as_by_java(answered: list[tuple[Case, str]], name: str) -> None:
    mine = [(case, answer) for case, answer in answered if case.assignor == name]
    assert len(mine) == SMALL + LARGE
    for case, answer in mine:
        assert tell_shares(case.shares(named(name))) == tell_shares(read_shares(answer)), "\n".join(case.lines())
