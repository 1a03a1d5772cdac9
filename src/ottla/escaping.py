"""Text from elsewhere, such as the names of groups and clients, made safe for terminals and lines of logs.

A name may contain any character: a newline forges a line of a log, an escape sequence changes what a terminal shows or types
into it, and a character that reverses the direction of writing hides what a name is. They are written as in Python's literals.
"""

from __future__ import annotations

import re

OTHERS = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
"""Delete and C1, which has escape sequences of its own; separators of lines; changes of direction; halves of surrogates."""
CONTROLS = re.compile(f"[\x00-\x1f{OTHERS}]")
CONTROLS_IN_LINES = re.compile(f"[\x00-\x08\x0b-\x1f{OTHERS}]")
"""All but newlines and tabs."""
CONTROLS_IN_JSON = re.compile(f"[{OTHERS}]")
SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def escape_controls(text: object) -> str:
    r"""Return a text as one line without characters that a terminal obeys: a newline is written as `\n`, ESC as `\x1b`."""
    return CONTROLS.sub(escape_of, str(text))


def escape_controls_in_lines(text: str) -> str:
    """Return a text of several lines in the same way; its newlines and tabs stay."""
    return CONTROLS_IN_LINES.sub(escape_of, text)


def escape_json(text: str) -> str:
    """Return a document in JSON in the same way, with escapes of JSON; what was below U+0020 is escaped in it already."""
    return CONTROLS_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def escape_of(found: re.Match[str]) -> str:
    character = found[0]
    number = ord(character)
    return SHORT.get(character) or (f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}")
