"""The texts of the project are plain technical English, measured by two rates per package.

The texts used a private dialect that newcomers could not read: software was described like a person, and docstrings
were relative clauses without a subject. Two rates are a proxy for this: certain words per 1,000 words, and the share of
docstrings that open with a relative clause. kafka-python and distributed have 0.8 and 0 to 0.8 %.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "ottla"
MODULES = "modules"
"""The name for the modules directly in the package."""
DIALECT = frozenset(
    [
        "who",
        "whoever",
        "whose",
        "whom",
        "nobody",
        "somebody",
        "told",
        "tells",
        "heard",
        "hear",
        "hears",
        "anew",
        "begun",
        "goes",
        "beside",
        "stands",
        "stand",
        "handed",
    ]
)
RELATIVE = re.compile(
    r"^(what|whether|who|whose|whoever|whom|where|which|why|those|nobody|somebody|something|of|as|how it|so that|from when"
    r"|let|may)\b",
    re.IGNORECASE,
)
WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")
LOGGING = frozenset({"debug", "info", "warning", "error", "critical", "exception"})


class Rates(NamedTuple):
    """Dialect words per 1,000 words, and the percentage of docstrings that open with a relative clause."""

    dialect: float
    relative: float


SOURCE = Rates(1.5, 1.0)
"""The limits of a package of the source."""
DOCUMENT = 3.0
"""The limit of dialect words in a document, in which some of them may refer to a person."""

STILL_REWRITTEN: dict[str, Rates] = {
    # A room that is being rewritten may have its present rates here, until it reaches the limits of SOURCE.
}
STILL_REWRITTEN_DOCUMENTS: dict[str, float] = {}


class Text(NamedTuple):
    is_docstring: bool
    text: str


def rooms() -> dict[str, list[Path]]:
    """Return the files of each package directly below `ottla`, and the modules at that level."""
    found = {
        each.name: sorted(each.rglob("*.py")) for each in sorted(PACKAGE.iterdir()) if (each / "__init__.py").exists()
    }
    return {MODULES: sorted(PACKAGE.glob("*.py")), **found}


def documents() -> dict[str, list[Path]]:
    """Return the documents by name. The guide and the decisions are one document each."""
    single = {name: [ROOT / name] for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "ARCHITECTURE.md")}
    decisions = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    guide = [each for each in sorted((ROOT / "docs").rglob("*.md")) if each not in decisions]
    return {**single, "docs": guide, "docs/decisions": decisions}


def texts_of(source: str) -> Iterator[Text]:
    """Yield docstrings, comments, and the messages of exceptions and of log calls."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield Text(True, text)
            case ast.Raise(exc=ast.Call(args=arguments)):
                yield from messages_in(arguments)
            case ast.Call(func=ast.Attribute(attr=name), args=[first, *_]) if name in LOGGING:
                yield from messages_in([first])
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Text(False, token.string)


def messages_in(nodes: Iterable[ast.expr]) -> Iterator[Text]:
    """Yield the string constants of more than one word."""
    for node in nodes:
        for piece in ast.walk(node):
            if isinstance(piece, ast.Constant) and isinstance(piece.value, str) and " " in piece.value:
                yield Text(False, piece.value)


def rates_of(texts: Iterable[Text]) -> Rates:
    words = dialect = docstrings = relative = 0
    for is_docstring, text in texts:
        found = WORD.findall(text.lower())
        words += len(found)
        dialect += sum(word in DIALECT for word in found)
        docstrings += is_docstring
        relative += is_docstring and bool(RELATIVE.match(text.strip()))
    return Rates(1000 * dialect / max(words, 1), 100 * relative / max(docstrings, 1))


@pytest.mark.parametrize("room", rooms())
def test_a_room_is_written_in_plain_words(room: str) -> None:
    texts = [text for file in rooms()[room] for text in texts_of(file.read_text(encoding="utf-8"))]
    rates, limit = rates_of(texts), STILL_REWRITTEN.get(room, SOURCE)
    assert rates.dialect <= limit.dialect, f"{room}: {rates.dialect:.1f} dialect words per 1,000 (see DIALECT)"
    assert rates.relative <= limit.relative, f"{room}: {rates.relative:.1f} % of docstrings open with a relative clause"


@pytest.mark.parametrize("document", documents())
def test_a_document_is_written_in_plain_words(document: str) -> None:
    files = documents()[document]
    rate = rates_of(Text(False, file.read_text(encoding="utf-8")) for file in files).dialect
    assert rate <= STILL_REWRITTEN_DOCUMENTS.get(document, DOCUMENT), f"{document}: {rate:.1f} dialect words per 1,000"


def test_exceptions_are_rooms_that_exist() -> None:
    assert set(STILL_REWRITTEN) <= set(rooms())
    assert set(STILL_REWRITTEN_DOCUMENTS) <= set(documents())


def test_docstrings_comments_and_messages_are_counted() -> None:
    source = '''"""What is known."""
limit = 1  # nobody knows
log.info("somebody told %s", limit)
raise ValueError(f"{limit} was heard by us")
print("whoever reads this is not counted")
'''
    rates = rates_of(texts_of(source))
    assert rates == Rates(1000 * 4 / 12, 100.0)
