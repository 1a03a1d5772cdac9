"""Make Python processes of a Spark job exit or wait at a step of the exactly-once protocol.

The folder is first on the path of the job that `interop/spark_job.py` runs. `OTTLA_STOP` is `mode/step/task`, such as
`commit/marked/1` or `hold/ending/0`. Steps of the driver are `announce/announcing/-`, `announce/announced/commit`,
`finish/finished/-` and the like. It happens once for each file `OTTLA_STOPPED`.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import time
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

SINK = "ottla.spark.sink.writers"
WISH = os.environ.get("OTTLA_STOP", "")
DAWDLE = 8.0


def reached(mode: str, step: str, task: object) -> None:
    """Kill the driver or this process, or wait, if `OTTLA_STOP` requests it and it has not happened yet."""
    if f"{mode}/{step}/{task}" != WISH:
        return
    try:
        os.close(os.open(os.environ["OTTLA_STOPPED"], os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        return
    whom = os.environ.get("OTTLA_STOP_WHOM", "driver")
    if whom == "nobody":
        time.sleep(DAWDLE)
        return
    if whom == "driver":
        for pid in Path(os.environ["OTTLA_DRIVER"]).read_text().split():
            os.kill(int(pid), signal.SIGKILL)
        return  # a zombie process: its further actions must be harmless
    os.kill(os.getpid(), signal.SIGKILL)


def around(owner: Any, name: str, place: Callable[..., tuple[str, object]], before: str, after: str) -> None:
    """Wrap a function so that it reaches one step before the call and one after it."""
    original = getattr(owner, name)

    def wrapped(*arguments: Any, **keywords: Any) -> Any:
        mode, task = place(*arguments)
        reached(mode, before, task)
        result = original(*arguments, **keywords)
        decided = getattr(result, "mode", None)  # the announcement decides the mode
        reached(mode, after, task if decided is None else decided.name.lower())
        return result

    setattr(owner, name, wrapped)


def watch(sink: Any) -> None:
    """Wrap all functions of the sink that can stop."""
    from ottla.spark.exactly_once import driver
    from ottla.spark.exactly_once.task import Task

    def of_task(task: Any, *_: Any) -> tuple[str, object]:
        return task.run.mode.name.lower(), task.index

    around(Task, "write_with", of_task, "begun", "ended")
    around(Task, "enter", of_task, "inited", "entered")
    around(Task, "decide", of_task, "looking", "read")
    around(Task, "mark", of_task, "sent", "marked")
    around(sink, "announce_run", lambda *_: ("announce", "-"), "announcing", "announced")
    around(sink, "finish_batch", lambda *_: ("finish", "-"), "finishing", "finished")
    around(driver, "end_transaction", lambda _, outcome: ("hold", outcome.task), "ending", "committed")


class Watcher(MetaPathFinder):
    """Wraps the sink when a process imports it.

    Most processes never import it, and Spark starts a dozen for each job.
    """

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if name != SINK:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        assert spec is not None
        loader: Any = spec.loader
        execute = loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            watch(module)

        loader.exec_module = exec_module
        return spec


if WISH:
    sys.meta_path.insert(0, Watcher())
