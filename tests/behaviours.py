"""A pytest plugin that lists the promises of docs/behaviours.md with the tests that prove them.

A test is marked with `@pytest.mark.behaviour("C2")`; `pytest --behaviours` collects, runs nothing and prints the list.
An id that is missing in the document is an error in every run.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

DOCUMENT = Path(__file__).parent.parent / "docs" / "behaviours.md"
PROVED, IN_PART, NOBODY = "proved", "in part", "nobody"
ROW = re.compile(r"^\| (?P<id>[A-Z]\d+) \| (?P<text>.+) \| ?(?P<missing>[^|]*?) ?\|$", re.MULTILINE)


class Promise(NamedTuple):
    """A promise in the document."""

    text: str
    missing: str
    """The missing part of a promise that tests prove only partly."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--behaviours", action="store_true", help="list what docs/behaviours.md promises and who proves it"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "behaviour(*ids): this test proves these lines of docs/behaviours.md")
    if config.option.behaviours:
        config.option.collectonly = True
        # Our own report replaces the list of collected tests.
        config.option.verbose = -3
        interop = config.rootpath / "interop"
        if config.args_source is pytest.Config.ArgsSource.TESTPATHS and interop.is_dir():
            config.args.append(str(interop))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    promised = read_promises(DOCUMENT.read_text(encoding="utf-8"))
    for item in items:
        for name in ids_of(item):
            if name not in promised:
                raise pytest.UsageError(f"{item.nodeid}: docs/behaviours.md has no behaviour {name!r}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.option.behaviours:
        promised = read_promises(DOCUMENT.read_text(encoding="utf-8"))
        session: pytest.Session | None = terminalreporter._session
        for line in report(promised, proofs(session.items if session else [])):
            terminalreporter.write_line(line)


def read_promises(document: str) -> dict[str, Promise]:
    """Return the promises in the document's tables by id."""
    return {row["id"]: Promise(row["text"], row["missing"]) for row in ROW.finditer(document)}


def ids_of(item: pytest.Item) -> Iterator[str]:
    """Return the ids of a test, including those of its class and module."""
    for mark in item.iter_markers("behaviour"):
        yield from mark.args


def proofs(items: Iterable[pytest.Item]) -> dict[str, list[str]]:
    """Return the tests that prove each id. All cases of a parametrized test count as one."""
    found: dict[str, list[str]] = {}
    for item in items:
        test = item.nodeid.partition("[")[0]
        for name in ids_of(item):
            if test not in found.setdefault(name, []):
                found[name].append(test)
    return found


def report(promised: Mapping[str, Promise], found: Mapping[str, list[str]]) -> Iterator[str]:
    """Return the lines to print: each promise with its tests, and the totals."""
    states = Counter(state_of(promise, found.get(name, [])) for name, promise in promised.items())
    for name, promise in promised.items():
        tests = found.get(name, [])
        state = state_of(promise, tests)
        yield f"{name:5}{state:9}{first_words(promise.text)}"
        if promise.missing:
            yield f"{'':14}not yet: {promise.missing}"
        yield from (f"{'':14}{test}" for test in tests)
    yield f"{len(promised)} behaviours: {states[PROVED]} proved, {states[IN_PART]} in part, {states[NOBODY]} by nobody yet"


def state_of(promise: Promise, tests: Sequence[str]) -> str:
    """Return how far a promise is proved."""
    if not tests:
        return NOBODY
    return IN_PART if promise.missing else PROVED


def first_words(text: str, width: int = 100) -> str:
    """Return as much of `text` as fits on one line, cut at a word."""
    return text if len(text) <= width else text[:width].rpartition(" ")[0] + " …"
