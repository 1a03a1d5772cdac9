"""The syntax of Java properties files, compared case by case with `java.util.Properties`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.errors import ConfigError
from ottla.properties import read_properties

CASES = {
    "a=b": [("a", "b")],
    "a:b": [("a", "b")],
    "a b": [("a", "b")],
    "  a \t= \t b  ": [("a", "b")],
    "a = = b": [("a", "= b")],
    "a==b": [("a", "=b")],
    "a": [("a", "")],
    "a=": [("a", "")],
    "# a=b\n! c=d\n\n \t\ne=f": [("e", "f")],
    "a=b # no comment": [("a", "b # no comment")],
    "a=b\\\n   c": [("a", "bc")],
    "a=b\\\n# c": [("a", "b# c")],
    "a\\\n  =b": [("a", "b")],
    "a=b\\\\\nc=d": [("a", "b\\"), ("c", "d")],
    "# a\\\nb=c": [("b", "c")],
    "a\\=b=c\\:d": [("a=b", "c:d")],
    "a\\ b=c": [("a b", "c")],
    "a=\\u00fc\\t\\x": [("a", "\u00fc\tx")],
    "a=C\\:\\\\data": [("a", "C:\\data")],
    "a=1\r\nb=2\rc=3": [("a", "1"), ("b", "2"), ("c", "3")],
    "a=b\\": [("a", "b")],
    "\\\na=b": [("a", "b")],
    "a=1\na=2": [("a", "1"), ("a", "2")],
    "=b": [("", "b")],
    "\u00fc=\u00fc": [("\u00fc", "\u00fc")],
}


@pytest.mark.parametrize("text", CASES)
def test_a_file_is_read_as_by_java(text: str) -> None:
    assert [(key, value) for _, key, value in read_properties(text)] == CASES[text]


def test_a_setting_has_the_number_of_its_first_line() -> None:
    assert [each.line for each in read_properties("#\na=1\n\nb=\\\n 2\nc=3")] == [2, 4, 6]


@pytest.mark.parametrize("value", ["\\u12", "\\u12g4", "\\u"])
def test_an_invalid_escape_is_reported_with_its_line(value: str) -> None:
    with pytest.raises(ConfigError, match=r"^line 2: \\u must be followed by four hexadecimal digits"):
        read_properties(f"a=1\nb={value}")


@given(st.text("ab=: \t\\\n\r#!u0", max_size=30))
def test_any_text_is_read_unless_it_has_an_invalid_escape(text: str) -> None:
    try:
        found = read_properties(text)
    except ConfigError:
        assert "\\u" in text
    else:
        assert [each.line for each in found] == sorted({each.line for each in found})
