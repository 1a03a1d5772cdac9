"""A docstring says what the signature cannot, or is not there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import ottla
from tests.repository.test_tree import tree_of

pytestmark = pytest.mark.xdist_group("tree")  # which is parsed once
PACKAGE = Path(ottla.__file__).parent
SWEPT = (
    "aio",
    "broker",
    "cli",
    "coordination",
    "network",
    "protocol",
    "records",
    "spark",
    "storage",
    "clock.py",
    "config.py",
    "model.py",
)
"""Where this holds by now; a part that is swept comes in here."""
FEW_WORDS = 4
HELP = ("command", "group", "option")
"""Decorators that print the docstring for whoever runs the command."""

Documented = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def empty_docstrings(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of each docstring of few words; one with something in backticks names a fact."""
    for node in ast.walk(module):
        if not isinstance(node, Documented) or is_help(node):
            continue
        text = ast.get_docstring(node)
        if text is not None and len(text.split()) <= FEW_WORDS and "`" not in text:
            yield node.lineno, text


def is_help(node: Documented) -> bool:
    return any(word in ast.unparse(decorator) for decorator in node.decorator_list for word in HELP)


@pytest.mark.parametrize("part", SWEPT)
def test_no_docstring_says_nothing(part: str) -> None:
    path = PACKAGE / part
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    assert files, f"{part} is no part of the package any more"
    found = [
        f"{file.relative_to(PACKAGE)}:{line}: {text}"
        for file in files
        for line, text in empty_docstrings(tree_of(file))
    ]
    assert not found, "say what the signature cannot, or strike it:\n" + "\n".join(found)


def test_the_checker_knows_what_says_nothing() -> None:
    source = '''
class Topic:
    """One topic."""

def short(x):
    """As `long` does."""

def long(x):
    """What is so and not otherwise."""

@main.command()
def show():
    """Print all."""
'''
    assert [text for _, text in empty_docstrings(ast.parse(source))] == ["One topic."]
