"""Errors of one sentence in the driver in place of a worker's traceback."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from ottla.errors import OttlaError

HIDE = "SPARK_HIDE_TRACEBACK"


@contextmanager
def without_traceback() -> Iterator[None]:
    """Raise an OttlaError from a Spark worker without its traceback, because its text has the remedy.

    Spark's worker reads `SPARK_HIDE_TRACEBACK` when it reports an exception, and ends afterwards. So the setting
    affects this error only; other exceptions keep their traceback.
    """
    try:
        yield
    except OttlaError:
        os.environ[HIDE] = "1"
        raise
