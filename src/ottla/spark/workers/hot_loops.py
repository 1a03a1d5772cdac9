"""Says where Spark runs Ottla without its compiled parts, as out of an archive of `--py-files`."""

from __future__ import annotations

from ottla.compiled import runs_compiled, warn_if_uncompiled
from ottla.records import decoder


def warn_if_slow() -> None:
    """Once in a process, in its log; a task hardly notices where there is nothing to say."""
    if not runs_compiled(decoder):
        warn_if_uncompiled()
