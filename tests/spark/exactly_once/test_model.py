"""The protocol of exactly once in every order of events, and what is found where it is done wrong."""

from __future__ import annotations

import pytest

from tests.spark.exactly_once.model import MISTAKES, SOUND, explore

pytestmark = [pytest.mark.behaviour("P10"), pytest.mark.behaviour("D3")]


@pytest.mark.parametrize("name", SOUND)
def test_no_row_is_missing_or_duplicated_for_any_order_of_events(name: str) -> None:
    found = explore(SOUND[name])
    assert found.fault is None
    assert found.states > 500
    assert found.finished


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_that_is_planted_is_found(name: str) -> None:
    assert explore(MISTAKES[name]).fault in {"twice", "missing"}
