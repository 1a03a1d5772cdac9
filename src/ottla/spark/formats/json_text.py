"""JSON text into nodes, as Spark's parser reads it: not quite the standard.

Single quotes are quotes, NaN and the infinities are numbers, a key may come twice, and whatever comes after the first
value is left alone. Nothing is converted yet: a number is its text.
"""

from __future__ import annotations

import re
from typing import Any


class NotJson(ValueError):
    """The text is no JSON; the message says where and why."""


class Number(str):
    """A number, as it is written."""

    __slots__ = ()


class Pairs(list[tuple[str, Any]]):
    """An object: keys and nodes in their order, also those that come twice."""

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
    **{word: Number(word) for word in ("NaN", "Infinity", "-Infinity", "+Infinity", "-INF", "+INF")},
}
ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
SURROGATES = re.compile("([\ud800-\udbff])([\udc00-\udfff])|[\ud800-\udfff]")
DEPTH = 200
"""How deep values may lie within each other; Java's parser allows five times as much, which Python's stack does not."""


def parse_json(text: str) -> Any:
    """The first value in `text`: True, False, None, str, Number, Pairs, or a list of nodes. NotJson says what is wrong."""
    node, _ = value_at(text, SPACE.match(text).end(), DEPTH)  # type: ignore[union-attr]
    return node


def value_at(text: str, at: int, depth: int) -> tuple[Any, int]:
    """The value at a position, and where the text goes on."""
    first = text[at : at + 1]
    if first == "{":
        return object_at(text, at + 1, depth)
    if first == "[":
        return array_at(text, at + 1, depth)
    if first in STRING and first:
        return string_at(text, at)
    match = NUMBER.match(text, at)
    if match:
        return Number(match[0]), match.end()
    word = WORD.match(text, at)
    if word is None or word[0] not in WORDS:
        raise NotJson(f"expected a value at {where(text, at)}")
    return WORDS[word[0]], word.end()


def object_at(text: str, at: int, depth: int) -> tuple[Pairs, int]:
    """An object, after its brace."""
    deeper(depth)
    pairs = Pairs()
    at = skip(text, at)
    if text[at : at + 1] == "}":
        return pairs, at + 1
    while True:
        if text[at : at + 1] not in ('"', "'"):
            raise NotJson(f"expected a key in quotes at {where(text, at)}")
        key, at = string_at(text, at)
        at = skip(text, at)
        if text[at : at + 1] != ":":
            raise NotJson(f"expected a colon at {where(text, at)}")
        node, at = value_at(text, skip(text, at + 1), depth - 1)
        pairs.append((key, node))
        more, at = next_at(text, at, "}")
        if not more:
            return pairs, at


def array_at(text: str, at: int, depth: int) -> tuple[list[Any], int]:
    """An array, after its bracket."""
    deeper(depth)
    nodes: list[Any] = []
    at = skip(text, at)
    if text[at : at + 1] == "]":
        return nodes, at + 1
    while True:
        node, at = value_at(text, at, depth - 1)
        nodes.append(node)
        more, at = next_at(text, at, "]")
        if not more:
            return nodes, at


def next_at(text: str, at: int, close: str) -> tuple[bool, int]:
    """Whether a comma follows, and where the text goes on after it, or after what closes."""
    at = skip(text, at)
    sign = text[at : at + 1]
    if sign == ",":
        return True, skip(text, at + 1)
    if sign == close:
        return False, at + 1
    raise NotJson(f"expected a comma or {close} at {where(text, at)}")


def string_at(text: str, at: int) -> tuple[str, int]:
    """A string, at its opening quote."""
    match = STRING[text[at]].match(text, at)
    if match is None:
        raise NotJson(f"a string that never ends, or has what no string may have, begins at {where(text, at)}")
    return (unescaped(match[1]) if "\\" in match[1] else match[1]), match.end()


def unescaped(text: str) -> str:
    """Escapes as what they mean; half a surrogate pair is a question mark, as Java writes it in UTF-8."""
    plain = ESCAPE.sub(lambda found: meaning(found[1]), text)
    return SURROGATES.sub(lambda found: paired(found[0]), plain)


def meaning(escape: str) -> str:
    return chr(int(escape[1:], 16)) if len(escape) == 5 else ESCAPES.get(escape, escape)


def paired(surrogates: str) -> str:
    return surrogates.encode("utf-16-le", "surrogatepass").decode("utf-16-le") if len(surrogates) == 2 else "?"


def skip(text: str, at: int) -> int:
    return SPACE.match(text, at).end()  # type: ignore[union-attr]


def deeper(depth: int) -> None:
    if depth == 0:
        raise NotJson(f"values lie more than {DEPTH} deep within each other")


def where(text: str, at: int) -> str:
    """A place in the text, for a person."""
    return f"character {at}, {text[at : at + 12]!r}" if at < len(text) else f"character {at}, the end"


def written(node: Any) -> str:
    """A node as JSON again, without white space; numbers as they were written."""
    match node:
        case Pairs():
            return "{" + ",".join(f"{quoted(key)}:{written(inner)}" for key, inner in node) + "}"
        case list():
            return "[" + ",".join(map(written, node)) + "]"
        case Number():
            return str(node)
        case str():
            return quoted(node)
        case None:
            return "null"
        case _:
            return "true" if node else "false"


QUOTED = re.compile(r'["\\\x00-\x1f]')
SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def quoted(text: str) -> str:
    """A string in quotes, other letters than English ones as they are, as Spark writes it."""
    return '"' + QUOTED.sub(lambda found: SHORT.get(found[0]) or f"\\u{ord(found[0]):04X}", text) + '"'
