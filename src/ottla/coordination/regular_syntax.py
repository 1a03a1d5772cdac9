"""A parser of RE2's syntax. The error messages are those of RE2/J, which Kafka's broker uses."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

MOST_REPEATS = 1_000
MOST_DEPTH = 100
Holds = Callable[[str], bool]


class SyntaxFault(Exception):
    """The text is no valid expression; the message has the reason."""


class Chars(Struct, frozen=True):
    holds: Holds


class Edge(Struct, frozen=True):
    """A position: `^`, `$`, `b` or `B`."""

    kind: str


class Sequence(Struct, frozen=True):
    parts: tuple[Node, ...]


class Choice(Struct, frozen=True):
    parts: tuple[Node, ...]


class Repeat(Struct, frozen=True):
    """A part with a minimum and a maximum count."""

    part: Node
    least: int
    most: int | None


Node = Chars | Edge | Sequence | Choice | Repeat


class Flags(Struct, frozen=True):
    """The flags set by `(?…)`."""

    ignore_case: bool = False
    dot_all: bool = False


def one_of(*chars: str) -> Holds:
    known = frozenset(chars)
    return lambda char: char in known


def between(first: str, last: str) -> Holds:
    return lambda char: first <= char <= last


def any_of(kinds: list[Holds]) -> Holds:
    """Return the union of character classes."""
    return lambda char: any(holds(char) for holds in kinds)


def negated(holds: Holds) -> Holds:
    return lambda char: not holds(char)


CLASSES: dict[str, Holds] = {
    "d": between("0", "9"),
    "s": one_of(*"\t\n\f\r "),
    "w": any_of([between("0", "9"), between("a", "z"), between("A", "Z"), one_of("_")]),
}
NAMED: dict[str, Holds] = {
    "alnum": lambda char: char.isascii() and char.isalnum(),
    "alpha": lambda char: char.isascii() and char.isalpha(),
    "ascii": lambda char: char.isascii(),
    "blank": one_of(*"\t "),
    "cntrl": lambda char: char < " " or char == "\x7f",
    "digit": CLASSES["d"],
    "graph": between("!", "~"),
    "lower": between("a", "z"),
    "print": between(" ", "~"),
    "punct": lambda char: "!" <= char <= "~" and not char.isalnum(),
    "space": one_of(*"\t\n\v\f\r "),
    "upper": between("A", "Z"),
    "word": CLASSES["w"],
    "xdigit": one_of(*"0123456789abcdefABCDEF"),
}
ESCAPES = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
EDGES = {"A": "^", "z": "$", "b": "b", "B": "B"}


class Syntax:
    """The parser of one expression."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._flags = Flags()
        self._depth = 0

    def parse(self) -> Node:
        """Return the parsed expression. Raise SyntaxFault if it is invalid."""
        node = self._choice()
        if self._at < len(self._text):
            raise SyntaxFault("unexpected )")
        return node

    def _peek(self, ahead: str) -> bool:
        return self._text.startswith(ahead, self._at)

    def _take(self, wanted: str) -> bool:
        found = self._peek(wanted)
        self._at += len(wanted) if found else 0
        return found

    def _next(self, fault: str) -> str:
        if self._at >= len(self._text):
            raise SyntaxFault(fault)
        self._at += 1
        return self._text[self._at - 1]

    def _choice(self) -> Node:
        parts = [self._sequence()]
        while self._take("|"):
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while self._at < len(self._text) and not self._peek("|") and not self._peek(")"):
            parts += self._quoted() if self._take("\\Q") else [self._repeated(self._atom())]
        return Sequence(tuple(parts))

    def _quoted(self) -> list[Node]:
        end = self._text.find("\\E", self._at)
        quoted = self._text[self._at : end if end >= 0 else None]
        self._at = len(self._text) if end < 0 else end + 2
        literals: list[Node] = [self._one(one_of(char)) for char in quoted]
        return [*literals[:-1], self._repeated(literals[-1])] if literals else []

    def _repeated(self, node: Node) -> Node:
        start = self._at
        bounds = self._bounds()
        if bounds is None:
            return node
        self._take("?")  # greedy or not makes no difference, because the whole text has to match
        end = self._at
        if self._bounds() is not None:
            raise SyntaxFault(f"invalid nested repetition operator: `{self._text[start : self._at]}`")
        self._at = end
        return Repeat(node, *bounds)

    def _bounds(self) -> tuple[int, int | None] | None:
        """Parse a repetition; return the minimum and maximum count, or None if there is none."""
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(sign):
                return bounds
        if not self._peek("{"):
            return None
        text, closed, _ = self._text[self._at + 1 :].partition("}")
        least, comma, most = text.partition(",")
        if not closed or not digits(least) or (most and not digits(most)):
            return None  # the brace is an ordinary character
        self._at += len(text) + 2
        found = int(least), (int(most) if most else None) if comma else int(least)
        if max(found[0], found[1] or 0) > MOST_REPEATS or (found[1] is not None and found[1] < found[0]):
            raise SyntaxFault(f"invalid repeat count: `{{{text}}}`")
        return found

    def _atom(self) -> Node:
        char = self._next("unexpected end")
        match char:
            case "(":
                return self._group()
            case "[":
                return self._one(self._class())
            case ".":
                dot_all = self._flags.dot_all
                return Chars(lambda char: dot_all or char != "\n")
            case "^" | "$":
                return Edge(char)
            case "*" | "+" | "?":
                raise SyntaxFault(f"missing argument to repetition operator: `{char}`")
            case "{":
                self._at -= 1
                if self._bounds() is not None:
                    raise SyntaxFault("missing argument to repetition operator: `{`")
                self._at += 1
            case "\\":
                return self._escaped()
        return self._one(one_of(char))

    def _group(self) -> Node:
        before = self._flags
        if self._peek("?"):
            alone = self._group_head()
            if alone:
                return Sequence(())
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise SyntaxFault("expression nests too deeply")
        node = self._choice()
        self._depth -= 1
        if not self._take(")"):
            raise SyntaxFault("missing closing )")
        self._flags = before
        return node

    def _group_head(self) -> bool:
        """Parse what follows `(?`; return True if it only sets flags and no group follows."""
        start = self._at - 1
        for sign in ("?P<", "?<"):
            if self._peek(sign) and not self._peek("?<=") and not self._peek("?<!"):
                self._at += len(sign)
                name, closed, _ = self._text[self._at :].partition(">")
                if not closed or not name.isidentifier():
                    raise SyntaxFault(f"invalid named capture: `{self._text[start : self._at + len(name) + 1]}`")
                self._at += len(name) + 1
                return False
        self._at += 1
        on = True
        while (char := self._next("missing closing )")) not in ":)":
            if char == "-" and on:
                on = False
            elif char in "imsU":
                self._set(char, on)
            else:
                raise SyntaxFault(f"invalid or unsupported Perl syntax: `{self._text[start : self._at]}`")
        return char == ")"

    def _set(self, flag: str, on: bool) -> None:
        if flag == "i":
            self._flags = replace(self._flags, ignore_case=on)
        elif flag == "s":
            self._flags = replace(self._flags, dot_all=on)

    def _escaped(self) -> Node:
        if self._at < len(self._text) and self._text[self._at] in EDGES:
            return Edge(EDGES[self._next("")])
        return self._one(self._escape())

    def _escape(self) -> Holds:
        """Parse an escape sequence after the backslash."""
        char = self._next("trailing backslash at end of expression")
        if char.lower() in CLASSES:
            holds = CLASSES[char.lower()]
            return negated(holds) if char.isupper() else holds
        if char in "pP":
            return self._category(char == "P")
        if char in ESCAPES:
            return one_of(ESCAPES[char])
        if char == "x":
            return one_of(self._hexadecimal())
        if char.isascii() and char.isalnum():
            raise SyntaxFault(f"invalid escape sequence: `\\{char}`")
        return one_of(char)

    def _category(self, negative: bool) -> Holds:
        name = self._next("invalid character class range: `\\p`")
        if name == "{":
            name, closed, _ = self._text[self._at :].partition("}")
            self._at += len(name) + 1
            if not closed:
                raise SyntaxFault(f"invalid character class range: `\\p{{{name}`")
        negative ^= name.startswith("^")
        name = name.removeprefix("^")
        if not (name[:1] in set("CLMNPSZ") and len(name) <= 2):
            raise SyntaxFault(f"invalid character class range: `\\p{{{name}}}`")
        return lambda char: unicodedata.category(char).startswith(name) != negative

    def _hexadecimal(self) -> str:
        if self._take("{"):
            text, _, _ = self._text[self._at :].partition("}")
            self._at += len(text) + 1
        else:
            text = self._text[self._at : self._at + 2]
            self._at += 2
        try:
            return chr(int(text, 16))
        except (ValueError, OverflowError):
            raise SyntaxFault(f"invalid escape sequence: `\\x{text}`") from None

    def _class(self) -> Holds:
        """Parse a character class after its opening bracket."""
        negative = self._take("^")
        kinds: list[Holds] = []
        while not (self._peek("]") and kinds):
            kinds.append(self._class_part())
        self._at += 1
        return negated(any_of(kinds)) if negative else any_of(kinds)

    def _class_part(self) -> Holds:
        if self._take("[:"):
            name, closed, _ = self._text[self._at :].partition(":]")
            holds = NAMED.get(name.removeprefix("^"))
            if not closed or holds is None:
                raise SyntaxFault(f"invalid character class range: `[:{name}:]`")
            self._at += len(name) + 2
            return negated(holds) if name.startswith("^") else holds
        first = self._next("missing closing ]")
        if first == "\\":
            at = self._at
            holds = self._escape()
            if self._text[at] not in ESCAPES and self._text[at].isalnum():
                return holds
            first = ESCAPES.get(self._text[at], self._text[at])
        if self._peek("-") and not self._peek("-]"):
            self._at += 1
            last = self._next("missing closing ]")
            last = self._next("missing closing ]") if last == "\\" else last
            if last < first:
                raise SyntaxFault(f"invalid character class range: `{first}-{last}`")
            return between(first, last)
        return one_of(first)

    def _one(self, holds: Holds) -> Chars:
        """Return a character, of either case if the flags ignore case."""
        if self._flags.ignore_case:
            return Chars(lambda char: holds(char.lower()) or holds(char.upper()))
        return Chars(holds)


def digits(text: str) -> bool:
    """Return True if the text is a number that may be a repeat count."""
    return text.isascii() and text.isdigit()
