"""Ottla's texts share no six consecutive words with a sentence in Apache Kafka's classes.

Names of settings, records and classes are the field's terms. Each counts as one word, however it is written.
"""

from __future__ import annotations

import ast
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

from rivals.apache_kafka import JARS, fetch

SOURCES = Path(__file__).parent.parent / "src" / "ottla"
ROW, LETTERS = 6, 15
"""The minimum numbers of words and of letters in a match. Patterns and formats have fewer."""
WORD = re.compile(r"[a-z][a-z._-]*[a-z]|[a-z]")
HOLES = re.compile(r"[\x01\x02]|%[sd]|\{\}")
"""Placeholders of values in Java and in Python."""
UTF8, STRING = 1, 8
SIZES = {3: 5, 4: 5, 5: 9, 6: 9, 7: 3, 8: 3, 9: 5, 10: 5, 11: 5, 12: 5, 15: 4, 16: 3, 17: 5, 18: 5, 19: 3, 20: 3}
"""The size of a constant pool entry by its tag (The Java Virtual Machine Specification, 4.4)."""
TWO_PLACES = (5, 6)


def sentences(code: bytes) -> Iterator[str]:
    """Yield the string constants of a class file."""
    texts: dict[int, str] = {}
    named: list[int] = []
    (count,) = struct.unpack_from(">H", code, 8)
    at, number = 10, 1
    while number < count:
        kind = code[at]
        if kind == UTF8:
            (size,) = struct.unpack_from(">H", code, at + 1)
            texts[number] = code[at + 3 : at + 3 + size].decode(errors="replace")
            at += 3 + size
        else:
            if kind == STRING:
                named += struct.unpack_from(">H", code, at + 1)
            at += SIZES[kind]
        number += 2 if kind in TWO_PLACES else 1
    return (texts[each] for each in named)


def rows(sentence: str) -> Iterator[tuple[str, ...]]:
    for part in HOLES.split(sentence.lower()):
        words = WORD.findall(part)
        for first in range(len(words) - ROW + 1):
            row = tuple(words[first : first + ROW])
            if sum(map(len, row)) >= LETTERS:
                yield row


def rows_of_kafka() -> set[tuple[str, ...]]:
    found: set[tuple[str, ...]] = set()
    for jar in JARS.glob("kafka*.jar"):
        with ZipFile(jar) as classes:
            for name in classes.namelist():
                if name.endswith(".class"):
                    found.update(row for sentence in sentences(classes.read(name)) for row in rows(sentence))
    return found


def literals(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield each string of a module with its line.

    Expressions in f-strings are placeholders, and docstrings are excluded.
    """
    inner = {id(part) for each in ast.walk(tree) if isinstance(each, ast.JoinedStr) for part in each.values}
    inner |= {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    for each in ast.walk(tree):
        if isinstance(each, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in each.values)
            yield each.lineno, "".join(map(str, parts))
        elif isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in inner:
            yield each.lineno, each.value


def test_no_sentence_is_copied_from_apache_kafka() -> None:
    fetch()
    theirs = rows_of_kafka()
    assert len(theirs) > 20_000
    same = [
        f"{file.relative_to(SOURCES)}:{line}: {' '.join(row)}"
        for file in sorted(SOURCES.rglob("*.py"))
        for line, text in literals(ast.parse(file.read_text(encoding="utf-8")))
        for row in rows(text)
        if row in theirs
    ]
    assert same == []
