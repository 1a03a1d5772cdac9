"""The log as text: one line for each event, whatever names are in its message; tracebacks below."""

from __future__ import annotations

import logging
import traceback
from types import TracebackType
from typing import TypeAlias

from ottla.escaping import escape_controls, escape_controls_in_lines

ExcInfo: TypeAlias = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class EscapingFormatter(logging.Formatter):
    """A formatter that escapes what clients send, so that a name cannot forge lines of the log or command a terminal."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = escape_controls(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: ExcInfo) -> str:
        kind, error, trace = ei
        if kind is None or error is None:
            return ""
        parts = traceback.TracebackException(kind, error, trace, compact=True).format()
        return "".join(map(escape_part, parts)).rstrip("\n")


def escape_part(part: str) -> str:
    """A part of a traceback. Frames begin with a space and may have several lines; of an exception's message one is made."""
    if part[:1].isspace():
        return escape_controls_in_lines(part)
    return escape_controls(part.rstrip("\n")) + "\n"
