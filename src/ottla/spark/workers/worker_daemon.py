"""Spark's own daemon of Python workers, without a traceback on the terminal when Spark stops.

`python -m ottla.spark.workers.worker_daemon`: Spark starts it where `spark.python.daemon.module` says so. Through a socket of the
file system a worker learns at once that Spark has hung up, and fails as it says goodbye; it has nothing left to lose then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import ParamSpec

from pyspark import daemon

P = ParamSpec("P")

ENDED = 1
"""What tells the daemon that this worker takes no more tasks."""


def unless_spark_hung_up(work: Callable[P, int]) -> Callable[P, int]:
    """A worker's run, which ends in silence where nobody is left to hear of it."""

    def run(*args: P.args, **kwargs: P.kwargs) -> int:
        be_its_own()
        try:
            return work(*args, **kwargs)
        except BrokenPipeError:
            sys.unraisablehook = unheard
            return ENDED

    return run


def unheard(unraisable: object) -> None:
    """Since Python 3.13 a stream that is thrown away tells that what was left in it reached nobody."""


def be_its_own() -> None:
    """After a fork: chance of its own, which Python's `random` sees to by itself."""
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed()


def main() -> None:
    daemon.worker = unless_spark_hung_up(daemon.worker)
    daemon.manager()


if __name__ == "__main__":
    main()
