"""A docstring adds information to the signature, or is omitted."""

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
"""The parts in which the rule holds by now. Add a part after its docstrings have been reviewed."""
FEW_WORDS = 4
HELP = ("command", "group", "option")
"""Decorators that print the docstring as the help text of a command."""

Documented = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def empty_docstrings(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each docstring of few words. Docstrings with text in backticks are accepted."""
    for node in ast.walk(module):
        if not isinstance(node, Documented) or is_help(node):
            continue
        text = ast.get_docstring(node)
        if text is not None and len(text.split()) <= FEW_WORDS and "`" not in text:
            yield node.lineno, text


def is_help(node: Documented) -> bool:
    return any(word in ast.unparse(decorator) for decorator in node.decorator_list for word in HELP)


@pytest.mark.parametrize("part", SWEPT)
def test_no_docstring_is_empty_of_information(part: str) -> None:
    path = PACKAGE / part
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    assert files, f"{part} is no part of the package any more"
    found = [
        f"{file.relative_to(PACKAGE)}:{line}: {text}"
        for file in files
        for line, text in empty_docstrings(tree_of(file))
    ]
    assert not found, "say what the signature cannot, or strike it:\n" + "\n".join(found)


def test_the_checker_detects_docstrings_without_information() -> None:
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
