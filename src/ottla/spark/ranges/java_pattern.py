r"""Converts Java regular expressions (`subscribePattern`) to Python's.

Most syntax is the same. Syntax that only Java has is rewritten: character classes (`\p{Upper}`, `[a-z&&[^x]]`), quotes
(`\Q…\E`), names of groups, and anchors. Topic names use few characters, so a class is rewritten as the set of these
characters that it contains.
"""

from __future__ import annotations

import re
import string

from ottla.errors import ConfigError

LETTERS = string.ascii_letters
UNIVERSE = frozenset(LETTERS + string.digits + "._-")
"""The characters allowed in a topic's name."""
LOWER, UPPER = frozenset(string.ascii_lowercase), frozenset(string.ascii_uppercase)
DIGITS, WORD, MARKS = frozenset(string.digits), frozenset(LETTERS + string.digits + "_"), frozenset("._-")
NOTHING = frozenset[str]()
NAMED = {
    NOTHING: "Space Blank Cntrl IsWhite_Space IsControl Z Zs C Cc S M javaWhitespace",
    LOWER: "Lower Ll IsLowercase javaLowerCase",
    UPPER: "Upper Lu IsUppercase javaUpperCase",
    LOWER | UPPER: "Alpha L LC IsL IsAlphabetic IsLatin javaLetter",
    LOWER | UPPER | DIGITS: "Alnum javaLetterOrDigit",
    DIGITS: "Digit Nd N IsDigit javaDigit",
    frozenset(string.hexdigits): "XDigit IsHex_Digit",
    MARKS: "Punct P IsPunctuation",
    frozenset("-"): "Pd",
    frozenset("_"): "Pc",
    frozenset("."): "Po",
    UNIVERSE: "ASCII Graph Print",
}
PROPERTIES = {name: chars for chars, names in NAMED.items() for name in names.split()}
r"""The names allowed in `\p{…}`, with the characters of topic names that have the property."""
CLASSES = {"d": DIGITS, "w": WORD, "s": NOTHING, "h": NOTHING, "v": NOTHING}
CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
ENDS = {"z": r"\Z", "Z": r"\Z", "A": r"\A", "b": r"\b", "B": r"\B"}


def java_pattern(option: str, text: str) -> re.Pattern[str]:
    """Return the expression; ConfigError for syntax that is invalid or not supported."""
    reader = PatternReader(option, text)
    try:
        return re.compile(reader.expression())
    except re.error as error:
        raise reader.fault(f"is not a regular expression: {error}") from None
    except IndexError:
        raise reader.fault("is not a regular expression: it is incomplete") from None


class PatternReader:
    """Reads one expression from left to right."""

    def __init__(self, option: str, text: str) -> None:
        self.option, self.text, self.at = option, text, 0
        self.ignores_case = re.search(r"\(\?[a-z]*i", text) is not None

    def fault(self, words: str) -> ConfigError:
        return ConfigError(f"option {self.option} = {self.text!r} {words}")

    def expression(self) -> str:
        parts = []
        while self.at < len(self.text):
            parts.append(self.part())
        return "".join(parts)

    def part(self) -> str:
        if self.accept("\\Q"):
            return re.escape(self.quoted())
        if self.accept("\\k<"):
            return f"(?P={self.until('>')})"
        if self.accept("\\"):
            return self.escaped()
        if self.accept("["):
            return written(self.members())
        if re.match(r"\(\?<[a-zA-Z]", self.text[self.at :]):
            self.at += 3
            return "(?P<"
        return self.next()

    def escaped(self) -> str:
        """Convert an escape outside of brackets."""
        sign = self.text[self.at]
        if sign in ENDS:
            return ENDS[self.next()]
        if sign.isdigit() or sign in "xu":  # as in Python: groups and characters by number
            return "\\" + self.next()
        found = self.escaped_members()
        return written(found) if isinstance(found, frozenset) else re.escape(found)

    def escaped_members(self) -> frozenset[str] | str:
        """Read an escape: a class, or one character."""
        sign = self.next()
        if sign in "pP":
            name = self.until("}") if self.accept("{") else self.next()
            if name not in PROPERTIES:
                raise self.fault(
                    f"has \\{sign}{{{name}}}, which is not supported; list its characters, for example [A-Z]"
                )
            return self.negated(PROPERTIES[name]) if sign == "P" else PROPERTIES[name]
        if sign.lower() in CLASSES:
            return self.negated(CLASSES[sign.lower()]) if sign.isupper() else CLASSES[sign]
        if sign in CONTROLS:
            return CONTROLS[sign]
        if sign.isascii() and sign.isalnum():
            raise self.fault(f"has \\{sign}, which is not supported; list its characters")
        return sign

    def members(self) -> frozenset[str]:
        """Read a class in brackets, from after the opening one to the closing one."""
        negative = self.accept("^")
        found, first = NOTHING, True
        while first or not self.accept("]"):
            if self.accept("&&"):
                found &= self.intersected()
                break
            found |= self.member()
            first = False
        return self.negated(found) if negative else found

    def intersected(self) -> frozenset[str]:
        """Read the right side of `&&`, up to the closing bracket."""
        found = NOTHING
        while not self.accept("]"):
            if self.accept("&&"):
                return found & self.intersected()
            found |= self.member()
        return found

    def member(self) -> frozenset[str]:
        """Read a class within a class, a range, or one character."""
        if self.accept("["):
            return self.members()
        if self.accept("\\Q"):
            return frozenset(self.quoted()) & UNIVERSE
        first = self.character()
        if isinstance(first, frozenset):
            return first
        if self.text.startswith("-", self.at) and not self.text.startswith(("-]", "-[", "-&&"), self.at):
            self.at += 1
            last = self.character()
            if isinstance(last, frozenset) or last < first:
                raise self.fault(f"has a range from {first!r} that does not end after it")
            return self.both_cases(frozenset(char for char in UNIVERSE if first <= char <= last))
        return self.both_cases(frozenset(first) & UNIVERSE)

    def character(self) -> frozenset[str] | str:
        return self.escaped_members() if self.accept("\\") else self.next()

    def both_cases(self, chars: frozenset[str]) -> frozenset[str]:
        """Return the letters in both cases, if case is ignored."""
        return chars | {char.swapcase() for char in chars} if self.ignores_case else chars

    def negated(self, chars: frozenset[str]) -> frozenset[str]:
        return UNIVERSE - self.both_cases(chars)

    def accept(self, wanted: str) -> bool:
        """Return True and advance past `wanted` if it is next."""
        found = self.text.startswith(wanted, self.at)
        self.at += len(wanted) if found else 0
        return found

    def next(self) -> str:
        char = self.text[self.at]
        self.at += 1
        return char

    def until(self, end: str) -> str:
        stop = self.text.index(end, self.at) if end in self.text[self.at :] else len(self.text)
        found, self.at = self.text[self.at : stop], stop + len(end)
        return found

    def quoted(self) -> str:
        return self.until("\\E")


def written(chars: frozenset[str]) -> str:
    return f"[{re.escape(''.join(sorted(chars)))}]" if chars else "(?!)"
