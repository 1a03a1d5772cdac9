"""The console's display of bytes."""

from __future__ import annotations

import pytest

from ottla.console.record_view import MOST_BYTES, RecordCondition, show_bytes


@pytest.mark.parametrize(
    ("data", "form", "text"),
    [
        (b'{"a":[1]}', "json", '{\n  "a": [\n    1\n  ]\n}'),
        (b"{not json", "text", "{not json"),
        (b'["\\ud800\\u202e"]', "json", '[\n  "\\ud800\\u202e"\n]'),
        ("<script>é".encode(), "text", "<script>é"),
        (b"\x00\xff", "hex", "00 ff"),
        (b"a\x07", "hex", "61 07"),
        (b"", "text", ""),
        (None, "null", ""),
    ],
)
def test_bytes_are_shown_as_json_text_or_hex(data: bytes | None, form: str, text: str) -> None:
    assert show_bytes(data) == {"form": form, "text": text, "bytes": len(data or b""), "cut": False}


@pytest.mark.parametrize("before", range(4))
def test_a_long_value_is_marked_as_cut_and_stays_text_if_cut_inside_a_character(before: int) -> None:
    seen = show_bytes(b"x" * before + "한".encode() * MOST_BYTES)
    assert (seen["form"], seen["cut"], seen["bytes"]) == ("text", True, before + 3 * MOST_BYTES)
    assert set(seen["text"][before:]) == {"한"}


def test_json_that_is_nested_too_deep_is_text() -> None:
    assert show_bytes(b"[" * 30_000 + b"]" * 30_000)["form"] == "text"


def test_a_search_is_for_a_whole_key_and_a_part_of_the_text() -> None:
    assert RecordCondition().has(None, None)
    assert RecordCondition(key="a").has(b"a", None)
    assert not RecordCondition(key="a").has(b"ab", b"a")
    assert RecordCondition(text="b").has(b"abc", None)
    assert not RecordCondition(text="b").has(None, b"ac")
