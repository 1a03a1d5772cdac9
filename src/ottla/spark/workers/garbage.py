"""What the garbage collector of a Spark worker need not look at after every task."""

from __future__ import annotations

import gc
from dataclasses import dataclass

from pyspark import TaskContext


@dataclass
class Settling:
    """Of this process: whether it has had a task, and whether what that left is out of the collector's sight."""

    has_had_a_task: bool = False
    is_settled: bool = False


OURS = Settling()


def settle(worker: Settling = OURS) -> None:
    """Called as a task begins: what a worker holds from its first task to its last is put out of the collector's sight.

    A worker of Spark collects garbage after every task, before it takes the next. That looks at each object of pyspark,
    pyarrow, numpy and Ottla, none of which ever becomes garbage: 60 to 140 ms each time, where a task of 50,000 rows
    needs 30 ms. They are put away in the second task, when Spark has swept what was only of the first; once, so that
    what tasks leave behind later is swept as ever. Does nothing outside of a worker: other processes are their owners'.
    """
    if TaskContext.get() is None or worker.is_settled:
        return
    if worker.has_had_a_task:
        gc.freeze()
        worker.is_settled = True
    worker.has_had_a_task = True
