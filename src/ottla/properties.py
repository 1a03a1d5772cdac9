r"""Files in the syntax of Java's properties, as Kafka's `server.properties` is. Pure: text in, pairs out.

    # a comment, and so is a line that begins with !
    num.partitions = 3
    log.dirs : /var/lib/ottla
    listeners=INTERNAL://127.0.0.1:9092,\
              EXTERNAL://0.0.0.0:9094
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ottla.errors import ConfigError

BLANK = " \t\f"
KEY = re.compile(r"(?:\\.|[^\\=: \t\f])*", re.DOTALL)
BETWEEN = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Property(NamedTuple):
    """One setting and its first line, from 1."""

    line: int
    key: str
    value: str


def read_properties(text: str) -> list[Property]:
    """Return the settings in `text`, in order; raise ConfigError with the line that cannot be read."""
    return [read_property(line, content) for line, content in logical_lines(text)]


def property_line(key: str, value: str) -> str:
    """Return a setting as a line that is parsed to the same value; spaces around a value are not preserved."""
    escaped = (
        value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t").replace("\f", "\\f")
    )
    return f"{key}={escaped}\n"


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield logical lines with their numbers: comments removed, continuations joined."""
    number, content = 0, ""
    for current, line in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        line = line.lstrip(BLANK)
        if not content:
            if not line or line[0] in "#!":
                continue
            number = current
        content += line
        if is_continued(content):
            content = content[:-1]
        else:
            yield number, content
            content = ""
    if content:
        yield number, content


def is_continued(line: str) -> bool:
    """Return true if a line ends with a backslash that is not escaped."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def read_property(number: int, content: str) -> Property:
    """Return key and value of a logical line, which are separated by the first unescaped `=`, `:` or blank."""
    matched = KEY.match(content)
    assert matched is not None  # the pattern also matches an empty key
    between = BETWEEN.match(content, matched.end())
    assert between is not None
    value = unescape_text(number, content[between.end() :])
    return Property(number, unescape_text(number, matched.group()), value.strip())


def unescape_text(number: int, text: str) -> str:
    """Replace escape sequences."""

    def meant(found: re.Match[str]) -> str:
        if found[1]:
            return chr(int(found[1], 16))
        if found[2] == "u":
            raise ConfigError(f"line {number}: \\u must be followed by four hexadecimal digits")
        return LETTERS.get(found[2], found[2])

    return ESCAPE.sub(meant, text)
