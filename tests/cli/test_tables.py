"""Tables as they stand in a terminal."""

from __future__ import annotations

import unicodedata
from typing import Literal

import pytest

from ottla.cli.tables import aligned


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_korean_character_takes_two_columns(form: Literal["NFC", "NFD"]) -> None:
    """Composed, as a keyboard has it, or in parts, as file names are elsewhere."""
    name = unicodedata.normalize(form, "주문-1")
    assert aligned(("NAME", "STATE"), [(name, "running"), ("orders", "paused")]).splitlines() == [
        "NAME    STATE",
        f"{name}  running",
        "orders  paused",
    ]


def test_an_accent_that_stands_apart_takes_none() -> None:
    assert aligned(("A", "B"), [("x\u0323", 1)]).splitlines() == ["A  B", "x\u0323  1"]
