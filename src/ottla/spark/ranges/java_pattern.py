r"""Java's regular expressions, as `subscribePattern` takes them, for Python.

Both languages agree on most. What only Java has is written out here: classes of characters (`\p{Upper}`, `[a-z&&[^x]]`), quotes
(`\Q…\E`), names of groups, ends. Names of topics have few characters, so that a class is those of them that it holds.
"""

from __future__ import annotations

import re
import string

from ottla.errors import ConfigError

LETTERS = string.ascii_letters
UNIVERSE = frozenset(LETTERS + string.digits + "._-")
"""What the name of a topic may have."""
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
"""What `\\p{…}` may name, and what of it topics may have."""
CLASSES = {"d": DIGITS, "w": WORD, "s": NOTHING, "h": NOTHING, "v": NOTHING}
CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
ENDS = {"z": r"\Z", "Z": r"\Z", "A": r"\A", "b": r"\b", "B": r"\B"}


def java_pattern(option: str, text: str) -> re.Pattern[str]:
    """The expression; ConfigError names what cannot be read in it."""
    reader = Reader(option, text)
    try:
        return re.compile(reader.expression())
    except re.error as error:
        raise reader.fault(f"is no regular expression: {error}") from None
    except IndexError:
        raise reader.fault("is no regular expression: it ends too soon") from None


class Reader:
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
        """What comes after a backslash, outside of brackets."""
        sign = self.text[self.at]
        if sign in ENDS:
            return ENDS[self.next()]
        if sign.isdigit() or sign in "xu":  # as in Python: groups and characters by number
            return "\\" + self.next()
        found = self.escaped_members()
        return written(found) if isinstance(found, frozenset) else re.escape(found)

    def escaped_members(self) -> frozenset[str] | str:
        """A class, or one character."""
        sign = self.next()
        if sign in "pP":
            name = self.until("}") if self.accept("{") else self.next()
            if name not in PROPERTIES:
                raise self.fault(
                    f"has \\{sign}{{{name}}}, which is not known here; write out its characters, such as [A-Z]"
                )
            return self.negated(PROPERTIES[name]) if sign == "P" else PROPERTIES[name]
        if sign.lower() in CLASSES:
            return self.negated(CLASSES[sign.lower()]) if sign.isupper() else CLASSES[sign]
        if sign in CONTROLS:
            return CONTROLS[sign]
        if sign.isascii() and sign.isalnum():
            raise self.fault(f"has \\{sign}, which is not known here; write out the characters it stands for")
        return sign

    def members(self) -> frozenset[str]:
        """Of a class in brackets, from after the first one to after the last."""
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
        """What stands to the right of `&&`, to the end of the brackets."""
        found = NOTHING
        while not self.accept("]"):
            if self.accept("&&"):
                return found & self.intersected()
            found |= self.member()
        return found

    def member(self) -> frozenset[str]:
        """A class within a class, a range, or one character."""
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
        """With the other case of each letter, where the case does not matter."""
        return chars | {char.swapcase() for char in chars} if self.ignores_case else chars

    def negated(self, chars: frozenset[str]) -> frozenset[str]:
        return UNIVERSE - self.both_cases(chars)

    def accept(self, wanted: str) -> bool:
        """Whether it is next; then go on after it."""
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
