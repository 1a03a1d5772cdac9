"""Lets every thread of a program write with the formats of Python packages.

Spark looks for such a format in the session that is active in the thread that writes, and a thread other than the one
that made the session has none: it is told that there is no such source. Reading, and everything of Spark's own, goes by
the session that the DataFrame is of. So does writing, once this module has been asked to see to it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
MARK = "has_its_session"


def let_threads_write() -> None:
    """Have `save` and `start` make the session of their DataFrame the thread's, where the thread has none."""
    from pyspark.sql.readwriter import DataFrameWriter
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    for writer, name in ((DataFrameWriter, "save"), (DataStreamWriter, "start"), (DataStreamWriter, "toTable")):
        method = getattr(writer, name)
        if not hasattr(method, MARK):
            setattr(writer, name, in_its_session(method))


def in_its_session(method: Callable[P, T]) -> Callable[P, T]:
    """The method of a writer, run in a thread with an active session."""

    @wraps(method)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        ensure_active(getattr(args[0], "_spark", None))
        return method(*args, **kwargs)

    setattr(run, MARK, True)
    return run


def ensure_active(session: Any) -> None:
    """Have Java's side know of a session in this thread, where it knows of none."""
    sessions = sessions_of(session)
    if sessions is not None and not sessions.getActiveSession().isDefined():
        activate(session)


def activate(session: Any) -> None:
    """Make it the session of this thread, whatever was: one that another thread has stopped would stay."""
    sessions = sessions_of(session)
    if sessions is not None:
        sessions.setActiveSession(session._jsparkSession)


def sessions_of(session: Any) -> Any:
    """Those of its Java; None for one of Spark Connect, whose server sees to it."""
    java = getattr(session, "_jsparkSession", None)
    return None if java is None else session._jvm.org.apache.spark.sql.SparkSession
