"""Lets every thread of a program write with formats of Python packages.

Spark looks up such a format in the active session of the writing thread. A thread other than the one that created the
session has none, and fails with "data source not found". Reading, and Spark's own formats, use the session of the
DataFrame. With this module, writing does too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
MARK = "has_its_session"


def patch_writers() -> None:
    """Make `save` and `start` activate the session of their DataFrame in threads without an active session."""
    from pyspark.sql.readwriter import DataFrameWriter
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    for writer, name in ((DataFrameWriter, "save"), (DataStreamWriter, "start"), (DataStreamWriter, "toTable")):
        method = getattr(writer, name)
        if not hasattr(method, MARK):
            setattr(writer, name, in_its_session(method))


def in_its_session(method: Callable[P, T]) -> Callable[P, T]:
    """Return the method of a writer, run in a thread with an active session."""

    @wraps(method)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        ensure_active(getattr(args[0], "_spark", None))
        return method(*args, **kwargs)

    setattr(run, MARK, True)
    return run


def ensure_active(session: Any) -> None:
    """Activate a session in this thread, unless one is active."""
    sessions = sessions_of(session)
    if sessions is not None and not sessions.getActiveSession().isDefined():
        activate(session)


def activate(session: Any) -> None:
    """Activate a session in this thread. It replaces an active one, which another thread may have stopped."""
    sessions = sessions_of(session)
    if sessions is not None:
        sessions.setActiveSession(session._jsparkSession)


def sessions_of(session: Any) -> Any:
    """Return the sessions of its Java; None for Spark Connect, where the server activates sessions."""
    java = getattr(session, "_jsparkSession", None)
    return None if java is None else session._jvm.org.apache.spark.sql.SparkSession
