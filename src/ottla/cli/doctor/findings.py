"""A finding of `ottla doctor`: level, observation and remedy. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ottla.cli.counts import format_count
from ottla.errors import few_of

OK, WARNING, PROBLEM = "ok", "warning", "problem"
COLUMNS = ("LEVEL", "CHECK", "SEEN", "REMEDY")
MOST_NAMES = 5


class Finding(NamedTuple):
    """One line of the report."""

    level: str
    check: str
    """The checked thing, in a word or two."""
    seen: str
    remedy: str | None = None


def ok(check: str, seen: str) -> Finding:
    return Finding(OK, check, seen)


def warning(check: str, seen: str, remedy: str) -> Finding:
    return Finding(WARNING, check, seen, remedy)


def problem(check: str, seen: str, remedy: str) -> Finding:
    return Finding(PROBLEM, check, seen, remedy)


def format_few(names: Iterable[str]) -> str:
    """Return the first MOST_NAMES names and the number of further ones."""
    return few_of(list(names), MOST_NAMES)


def summary(findings: Iterable[Finding]) -> str:
    """Return the number of problems, warnings and successful checks."""
    levels = [each.level for each in findings]
    return ", ".join(
        (
            format_count(levels.count(PROBLEM), PROBLEM),
            format_count(levels.count(WARNING), WARNING),
            f"{levels.count(OK)} ok",
        )
    )
