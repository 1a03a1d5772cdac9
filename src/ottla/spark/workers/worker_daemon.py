"""Spark's daemon of Python workers, without a traceback on the terminal when Spark stops.

`python -m ottla.spark.workers.worker_daemon` is started by Spark through `spark.python.daemon.module`. Over a Unix
domain socket a worker gets BrokenPipeError as soon as Spark closes the connection, while it writes its last bytes,
which are not needed any more.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import ParamSpec

from pyspark import daemon

P = ParamSpec("P")

ENDED = 1
"""The status for the daemon: this worker accepts no more tasks."""


def unless_disconnected(work: Callable[P, int]) -> Callable[P, int]:
    """Return a worker's function that ends without an error if Spark has closed the connection."""

    def run(*args: P.args, **kwargs: P.kwargs) -> int:
        reseed()
        try:
            return work(*args, **kwargs)
        except BrokenPipeError:
            sys.unraisablehook = ignore_unraisable
            return ENDED

    return run


def ignore_unraisable(unraisable: object) -> None:
    """Ignore the error of a stream with unwritten data that is garbage collected, which Python reports since 3.13."""


def reseed() -> None:
    """Initialize numpy's random generator after a fork; Python's `random` does so itself."""
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed()


def main() -> None:
    daemon.worker = unless_disconnected(daemon.worker)
    daemon.manager()


if __name__ == "__main__":
    main()
