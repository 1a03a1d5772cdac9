"""The comparison of a page's example output with the real output."""

from __future__ import annotations

import pytest

from tests.repository.pages import pattern

SHOWN = "gets [0, 1]\n…\ngives up [1]\n…\n"


@pytest.mark.parametrize("between", ["", "gets []\n", "gets []\ngets []\n"])
def test_an_ellipsis_matches_any_number_of_lines(between: str) -> None:
    assert pattern(SHOWN).search(f"gets [0, 1]\n{between}gives up [1]\nthe end\n")
    assert pattern(SHOWN).search(f"gets [0, 1]\n{between}gives up [1]\n")


def test_text_next_to_an_ellipsis_has_to_be_in_the_output() -> None:
    assert pattern("GROUP … LAG\n").search("GROUP  TOPIC  LAG\n")
    assert not pattern(SHOWN).search("gets [0, 1]\ngets []\n")
    assert not pattern(SHOWN).search("gives up [1]\ngets [0, 1]\n")
