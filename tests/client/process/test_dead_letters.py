"""The headers of dead letters."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ottla.client.process.dead_letters import MESSAGE_CHARACTERS, TRACE_CHARACTERS, dead_letter

RECORD: Any = SimpleNamespace(
    topic="orders", partition=1, offset=5, timestamp=9, headers=[("own", b"kept")], raw_value=b"v", raw_key=b"k"
)


def test_the_text_of_an_exception_is_escaped_and_bounded() -> None:
    error = ValueError("\ud800" + "x" * 2_000_000)

    letter = dead_letter(RECORD, error, "letters", "p")

    headers: Any = dict(letter.headers)  # type: ignore[arg-type]
    assert headers["own"] == b"kept"
    assert headers["__connect.errors.exception.message"] == b"\\ud800" + b"x" * (MESSAGE_CHARACTERS - 1)
    assert len(headers["__connect.errors.exception.stacktrace"]) == TRACE_CHARACTERS
