"""One sentence in the driver instead of a worker's traceback."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from ottla.errors import OttlaError

HIDE = "SPARK_HIDE_TRACEBACK"


@contextmanager
def plainly() -> Iterator[None]:
    """Let an OttlaError out of a Spark worker without its traceback: its text says what to do.

    Spark's workers ask this variable when they report an exception, and end after it, so the wish
    concerns this one error; a bug keeps its traceback.
    """
    try:
        yield
    except OttlaError:
        os.environ[HIDE] = "1"
        raise
