"""Parsing of ports: decimal numbers up to 65535."""

from __future__ import annotations

import pytest

from ottla.ports import is_port


@pytest.mark.parametrize("text", ["0", "1", "9092", "65535", "00080"])
def test_it_is_one(text: str) -> None:
    assert is_port(text)


@pytest.mark.parametrize("text", ["", "65536", "-1", "+1", "1.0", " 1", "1_000", "²", "٣", "ten", "9" * 5000])
def test_it_is_none(text: str) -> None:
    assert not is_port(text)
