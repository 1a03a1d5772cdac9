"""The text format of the log: one line per event, tracebacks below."""

from __future__ import annotations

import logging
import traceback
from types import TracebackType
from typing import TypeAlias

from ottla.escaping import escape_controls, escape_controls_in_lines

ExcInfo: TypeAlias = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class EscapingFormatter(logging.Formatter):
    """A formatter that escapes control characters.

    A client's name can then neither forge log lines nor control a terminal.
    """

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
    """Escape a part of a traceback.

    Frames start with a space and keep their lines; an exception's message becomes one line.
    """
    if part[:1].isspace():
        return escape_controls_in_lines(part)
    return escape_controls(part.rstrip("\n")) + "\n"
