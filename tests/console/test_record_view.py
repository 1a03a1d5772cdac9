"""How the console shows bytes."""

from __future__ import annotations

import pytest

from ottla.console.record_view import MOST_BYTES, Wanted, shown


@pytest.mark.parametrize(
    ("data", "form", "text"),
    [
        (b'{"a":[1]}', "json", '{\n  "a": [\n    1\n  ]\n}'),
        (b"{not json", "text", "{not json"),
        ("<script>é".encode(), "text", "<script>é"),
        (b"\x00\xff", "hex", "00 ff"),
        (b"a\x07", "hex", "61 07"),
        (b"", "text", ""),
        (None, "null", ""),
    ],
)
def test_bytes_are_shown_as_json_text_or_hex(data: bytes | None, form: str, text: str) -> None:
    assert shown(data) == {"form": form, "text": text, "bytes": len(data or b""), "cut": False}


@pytest.mark.parametrize("before", range(4))
def test_a_long_value_is_cut_and_says_so_and_half_a_character_makes_no_hex_of_it(before: int) -> None:
    seen = shown(b"x" * before + "한".encode() * MOST_BYTES)
    assert (seen["form"], seen["cut"], seen["bytes"]) == ("text", True, before + 3 * MOST_BYTES)
    assert set(seen["text"][before:]) == {"한"}


def test_json_that_is_nested_too_deep_is_text() -> None:
    assert shown(b"[" * 30_000 + b"]" * 30_000)["form"] == "text"


def test_a_search_is_for_a_whole_key_and_a_part_of_the_text() -> None:
    assert Wanted().has(None, None)
    assert Wanted(key="a").has(b"a", None)
    assert not Wanted(key="a").has(b"ab", b"a")
    assert Wanted(text="b").has(b"abc", None)
    assert not Wanted(text="b").has(None, b"ac")
