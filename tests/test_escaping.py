"""Escaping of untrusted names in terminals and logs."""

from __future__ import annotations

import json
import logging
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.escaping import CONTROLS, escape_controls, escape_controls_in_lines, escape_json
from ottla.log_format import EscapingFormatter


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("orders", "orders"),
        ("주문 été 👍🏽", "주문 été 👍🏽"),
        ("a\nb\tc\r", r"a\nb\tc\r"),
        ("\x1b[2Jx\x07", r"\x1b[2Jx\x07"),
        ("\x9b2J\x7f\x00", r"\x9b2J\x7f\x00"),
        ("user\u202egpj", r"user\u202egpj"),
        ("\u2028\u2066\udc80", r"\u2028\u2066\udc80"),
    ],
)
def test_control_characters_are_written_as_escapes(name: str, shown: str) -> None:
    assert escape_controls(name) == shown


@given(st.text())
def test_no_text_keeps_a_control_character_and_json_keeps_its_value(text: str) -> None:
    assert not CONTROLS.search(escape_controls(text))
    assert set(CONTROLS.findall(escape_controls_in_lines(text))) <= {"\n", "\t"}
    document = escape_json(json.dumps({"name": text}, ensure_ascii=False))
    assert not CONTROLS.search(document)
    assert json.loads(document) == {"name": text}


def line_of(message: str, *arguments: object, error: BaseException | None = None) -> str:
    record = logging.LogRecord("ottla.x", logging.INFO, "", 0, message, arguments, sys.exc_info() if error else None)
    return EscapingFormatter("%(levelname)s %(message)s").format(record)


def test_a_name_makes_no_second_line_in_a_log() -> None:
    assert line_of("member %s joined", "evil\nINFO all is well\x1b[2J") == (
        r"INFO member evil\nINFO all is well\x1b[2J joined"
    )


def test_a_traceback_keeps_its_lines_and_a_name_in_its_message_makes_none() -> None:
    try:
        try:
            raise ValueError("first\nINFO forged")
        except ValueError as cause:
            raise RuntimeError("second\x1b[2J\nINFO forged") from cause
    except RuntimeError as error:
        lines = line_of("it failed", error=error).splitlines()
    assert lines[0] == "INFO it failed"
    assert r"ValueError: first\nINFO forged" in lines
    assert "The above exception was the direct cause of the following exception:" in lines
    assert lines[-1] == r"RuntimeError: second\x1b[2J\nINFO forged"
    assert len([line for line in lines if line.startswith(f'  File "{__file__}"')]) == 2
