"""The layout of tables in a terminal."""

from __future__ import annotations

import unicodedata
from typing import Literal

import pytest

from ottla.cli.tables import format_table


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_korean_character_takes_two_columns(form: Literal["NFC", "NFD"]) -> None:
    """Composed, as a keyboard has it, or in parts, as file names are elsewhere."""
    name = unicodedata.normalize(form, "주문-1")
    assert format_table(("NAME", "STATE"), [(name, "running"), ("orders", "paused")]).splitlines() == [
        "NAME    STATE",
        f"{name}  running",
        "orders  paused",
    ]


def test_a_combining_accent_takes_no_column() -> None:
    assert format_table(("A", "B"), [("x\u0323", 1)]).splitlines() == ["A  B", "x\u0323  1"]
