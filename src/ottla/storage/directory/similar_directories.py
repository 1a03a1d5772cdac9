"""A search for the data directory that was meant, when a broker is about to create a new one."""

from __future__ import annotations

import os
from contextlib import suppress
from difflib import SequenceMatcher
from itertools import islice
from pathlib import Path

from ottla.storage.directory.meta_properties import FILE_NAME

SIMILARITY = 0.75
"""The least similarity of a misspelt name with the right one: one or two wrong characters."""
MOST_NAMES = 10_000
"""The names in a directory that are compared at most."""


def find_similar_directory(path: Path) -> Path | None:
    """Return the data directory with the most similar path. One part of `path` differs: its first missing one, or its last.

    Names that differ only in digits, such as `node-1` and `node-2`, are other directories, not misspelt ones.
    """
    found: list[tuple[float, Path]] = []
    with suppress(OSError):  # a search that fails only leaves out the warning
        missing = next((each for each in reversed(path.parents) if not each.exists()), path)
        rest = path.relative_to(missing)
        with os.scandir(missing.parent) as entries:
            for entry in islice(entries, MOST_NAMES):
                likeness = similarity(missing.name, entry.name)
                if likeness >= SIMILARITY and (Path(entry) / rest / FILE_NAME).is_file():
                    found.append((likeness, Path(entry) / rest))
    return max(found, default=(0.0, None), key=lambda each: each[0])[1]


def similarity(name: str, other: str) -> float:
    """Return the similarity of two names from 0 to 1; 0 if they are equal or differ only in digits."""
    if without_digits(name) == without_digits(other):
        return 0.0
    matcher = SequenceMatcher(None, name.casefold(), other.casefold())
    return matcher.ratio() if matcher.real_quick_ratio() >= SIMILARITY else 0.0


def without_digits(name: str) -> str:
    return "".join(each for each in name if not each.isdigit())
