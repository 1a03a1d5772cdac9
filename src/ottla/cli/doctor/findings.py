"""What `ottla doctor` says of one thing: how it is, what was seen, and what helps. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ottla.errors import few_of

OK, WARNING, PROBLEM = "ok", "warning", "problem"
COLUMNS = ("LEVEL", "CHECK", "SEEN", "REMEDY")
MOST_NAMES = 5


class Finding(NamedTuple):
    """One line of the report."""

    level: str
    check: str
    """What was looked at, in a word or two."""
    seen: str
    remedy: str | None = None


def ok(check: str, seen: str) -> Finding:
    return Finding(OK, check, seen)


def warning(check: str, seen: str, remedy: str) -> Finding:
    return Finding(WARNING, check, seen, remedy)


def problem(check: str, seen: str, remedy: str) -> Finding:
    return Finding(PROBLEM, check, seen, remedy)


def few(names: Iterable[str]) -> str:
    """The first MOST_NAMES, and how many more there are."""
    return few_of(list(names), MOST_NAMES)


def counted(count: int, noun: str, plural: str = "s") -> str:
    return f"{count:,} {noun}{plural * (count != 1)}"


def summary(findings: Iterable[Finding]) -> str:
    """How many problems, warnings, and things that are well."""
    levels = [each.level for each in findings]
    return ", ".join(
        (
            counted(levels.count(PROBLEM), PROBLEM),
            counted(levels.count(WARNING), WARNING),
            f"{levels.count(OK)} ok",
        )
    )
