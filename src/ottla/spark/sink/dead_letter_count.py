"""The number of dead letters of a query, which its sink writes to a file for `ottla pipeline status`.

Spark has no metrics for sinks in Python, and its driver calls `commit` in a separate process that only returns errors.
"""

from __future__ import annotations

import json
from pathlib import Path

COUNT_FILE = "dead-letter-count.json"


def add_dead_letters(file: Path, batch: int, count: int) -> None:
    """Add the dead letters of a batch once, even if its commit is repeated."""
    if not count:
        return
    last, total = read_count(file)
    if batch > last:
        temporary = file.with_suffix(".new")
        temporary.write_text(json.dumps({"batch": batch, "total": total + count}), encoding="utf-8")
        temporary.replace(file)


def read_count(file: Path) -> tuple[int, int]:
    """Return the last batch with dead letters, and the total; -1 and 0 if there is no count."""
    try:
        known = json.loads(file.read_text(encoding="utf-8"))
        return int(known["batch"]), int(known["total"])
    except (OSError, ValueError, TypeError, KeyError):
        return -1, 0
