"""Pytest plugins: one records the lines and the duration of each test, one runs a trial."""

from __future__ import annotations

import pickle
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest

IMPORTING = ""
"""The name of the test under which lines count that run while modules are loaded: every test depends on these."""


class Reached(NamedTuple):
    """The coverage and durations of a room's tests."""

    seconds: dict[str, float]
    """The durations of passed tests."""
    lines: dict[tuple[str, int], set[str]]
    """By file below the house, and line."""
    failing: list[str]
    """Tests that fail even without a mistake, uncompiled: nothing is to be learned from them."""

    def tests_of(self, file: str, first: int, last: int) -> set[str]:
        """Return the tests that execute these lines."""
        found = set().union(*(self.lines.get((file, line), set()) for line in range(first, last + 1)))
        passing = self.seconds.keys()
        return set(passing) if IMPORTING in found else found & passing


class Witness:
    """Looks on while all tests of a room run once, and writes down what it saw."""

    def __init__(self, house: Path, result: Path) -> None:
        self.prefix = f"{house}/ottla/"
        self.result = result
        self.test = IMPORTING
        self.reached = Reached({}, defaultdict(set), [])

    def pytest_load_initial_conftests(self) -> None:
        """Conftests import modules; their top-level lines would look as if no test executed them."""
        threading.settrace(self.enter)
        sys.settrace(self.enter)

    def enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        file = frame.f_code.co_filename
        if not file.startswith(self.prefix):
            return None
        name, lines = file[len(self.prefix) :], self.reached.lines
        # The bodies of modules and classes are executed by the first test; all later tests depend on them.
        at_import = not frame.f_code.co_flags & CO_OPTIMIZED

        def line(frame: FrameType, event: str, argument: Any) -> Any:
            if event == "line":
                lines[name, frame.f_lineno].add(IMPORTING if at_import else self.test)
            return line

        lines[name, frame.f_lineno].add(IMPORTING if at_import else self.test)
        return line

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.test, begun = item.nodeid, time.process_time()
        self.reached.seconds[item.nodeid] = 0.0
        result = yield
        if item.nodeid in self.reached.seconds:
            self.reached.seconds[item.nodeid] = time.process_time() - begun
        self.test = IMPORTING
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome != "passed":
            self.reached.seconds.pop(report.nodeid, None)
            if report.failed:
                self.reached.failing.append(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        sys.settrace(None)
        threading.settrace(None)
        self.result.write_bytes(
            pickle.dumps(Reached(self.reached.seconds, dict(self.reached.lines), self.reached.failing))
        )


class Chosen:
    """Keeps the tests that see the mistake, the quick ones first, and says which noticed."""

    def __init__(self, seconds: dict[str, float], verdict: Path) -> None:
        self.seconds = seconds
        self.verdict = verdict

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted((i for i in items if i.nodeid in self.seconds), key=lambda item: self.seconds[item.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.verdict.exists():
            self.verdict.write_text(report.nodeid, encoding="utf-8")
