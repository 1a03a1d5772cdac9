"""Parses JSON text to nodes, as Spark's parser does, which is not quite the standard.

Single quotes are quotes, NaN and infinity are numbers, a key may occur twice, and text after the first value is
ignored. Numbers are not converted: a number is its text.
"""

from __future__ import annotations

import re
from typing import Any


class NotJson(ValueError):
    """The text is not JSON; the message has the position and the reason."""


class JsonNumber(str):
    """A number in its original notation, so that no digit is lost before its type is known."""

    __slots__ = ()


class Pairs(list[tuple[str, Any]]):
    """An object: keys and nodes in order, including repeated keys."""

    __slots__ = ()


SPACE = re.compile(r"[ \t\n\r]*")
STRING = {
    '"': re.compile(r'"((?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt\']|u[0-9a-fA-F]{4}))*)"'),
    "'": re.compile(r"'((?:[^'\\\x00-\x1f]|\\(?:[\"\\/bfnrt']|u[0-9a-fA-F]{4}))*)'"),
}
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![0-9.a-zA-Z_$+-])")
WORD = re.compile(r"[+-]?[a-zA-Z]+")
WORDS: dict[str, Any] = {
    "true": True,
    "false": False,
    "null": None,
    **{word: JsonNumber(word) for word in ("NaN", "Infinity", "-Infinity", "+Infinity", "-INF", "+INF")},
}
ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
SURROGATES = re.compile("([\ud800-\udbff])([\udc00-\udfff])|[\ud800-\udfff]")
DEPTH = 200
"""The greatest nesting of values. Java's parser allows five times as much, which exceeds Python's stack."""


def parse_json(text: str) -> Any:
    """Return the first value in `text`: True, False, None, str, Number, Pairs, or a list of nodes.

    NotJson if it is not valid.
    """
    node, _ = value_at(text, SPACE.match(text).end(), DEPTH)  # type: ignore[union-attr]
    return node


def value_at(text: str, at: int, depth: int) -> tuple[Any, int]:
    """Return the value at a position, and the position after it."""
    first = text[at : at + 1]
    if first == "{":
        return object_at(text, at + 1, depth)
    if first == "[":
        return array_at(text, at + 1, depth)
    if first in STRING and first:
        return string_at(text, at)
    match = NUMBER.match(text, at)
    if match:
        return JsonNumber(match[0]), match.end()
    word = WORD.match(text, at)
    if word is None or word[0] not in WORDS:
        raise NotJson(f"expected a value at {describe_position(text, at)}")
    return WORDS[word[0]], word.end()


def object_at(text: str, at: int, depth: int) -> tuple[Pairs, int]:
    """Return an object, from after its brace."""
    next_depth(depth)
    pairs = Pairs()
    at = skip_space(text, at)
    if text[at : at + 1] == "}":
        return pairs, at + 1
    while True:
        if text[at : at + 1] not in ('"', "'"):
            raise NotJson(f"expected a key in quotes at {describe_position(text, at)}")
        key, at = string_at(text, at)
        at = skip_space(text, at)
        if text[at : at + 1] != ":":
            raise NotJson(f"expected a colon at {describe_position(text, at)}")
        node, at = value_at(text, skip_space(text, at + 1), depth - 1)
        pairs.append((key, node))
        more, at = next_at(text, at, "}")
        if not more:
            return pairs, at


def array_at(text: str, at: int, depth: int) -> tuple[list[Any], int]:
    """Return an array, from after its bracket."""
    next_depth(depth)
    nodes: list[Any] = []
    at = skip_space(text, at)
    if text[at : at + 1] == "]":
        return nodes, at + 1
    while True:
        node, at = value_at(text, at, depth - 1)
        nodes.append(node)
        more, at = next_at(text, at, "]")
        if not more:
            return nodes, at


def next_at(text: str, at: int, close: str) -> tuple[bool, int]:
    """Return True if a comma follows, and the position after it or after the closing sign."""
    at = skip_space(text, at)
    sign = text[at : at + 1]
    if sign == ",":
        return True, skip_space(text, at + 1)
    if sign == close:
        return False, at + 1
    raise NotJson(f"expected a comma or {close} at {describe_position(text, at)}")


def string_at(text: str, at: int) -> tuple[str, int]:
    """Return a string, from its opening quote."""
    match = STRING[text[at]].match(text, at)
    if match is None:
        raise NotJson(
            f"an incomplete string, or one with an invalid character, starts at {describe_position(text, at)}"
        )
    return (unescape_text(match[1]) if "\\" in match[1] else match[1]), match.end()


def unescape_text(text: str) -> str:
    """Return text with escapes replaced; half of a surrogate pair becomes a question mark, as when Java writes UTF-8."""
    plain = ESCAPE.sub(lambda found: read_escape(found[1]), text)
    return SURROGATES.sub(lambda found: decode_surrogates(found[0]), plain)


def read_escape(escape: str) -> str:
    return chr(int(escape[1:], 16)) if len(escape) == 5 else ESCAPES.get(escape, escape)


def decode_surrogates(surrogates: str) -> str:
    return surrogates.encode("utf-16-le", "surrogatepass").decode("utf-16-le") if len(surrogates) == 2 else "?"


def skip_space(text: str, at: int) -> int:
    return SPACE.match(text, at).end()  # type: ignore[union-attr]


def next_depth(depth: int) -> None:
    if depth == 0:
        raise NotJson(f"values are nested more than {DEPTH} levels deep")


def describe_position(text: str, at: int) -> str:
    """Return a position in the text for messages."""
    return f"character {at}, {text[at : at + 12]!r}" if at < len(text) else f"character {at}, the end"


def format_node(node: Any) -> str:
    """Return a node as JSON without white space; numbers as written."""
    match node:
        case Pairs():
            return "{" + ",".join(f"{quote_text(key)}:{format_node(inner)}" for key, inner in node) + "}"
        case list():
            return "[" + ",".join(map(format_node, node)) + "]"
        case JsonNumber():
            return str(node)
        case str():
            return quote_text(node)
        case None:
            return "null"
        case _:
            return "true" if node else "false"


QUOTED = re.compile(r'["\\\x00-\x1f]')
SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def quote_text(text: str) -> str:
    """Return a string in quotes; characters other than ASCII are not escaped, as in Spark."""
    return '"' + QUOTED.sub(lambda found: SHORT.get(found[0]) or f"\\u{ord(found[0]):04X}", text) + '"'
