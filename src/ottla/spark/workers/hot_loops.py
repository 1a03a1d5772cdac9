"""Warns if Spark runs Ottla without its compiled modules, for instance from an archive of `--py-files`."""

from __future__ import annotations

from ottla import compiled
from ottla.records import decoder


def warn_if_slow() -> None:
    """Log the warning once in a process."""
    compiled.warn_if_slow(decoder)
