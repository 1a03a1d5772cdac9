"""Exceptions raised at any point of a call, as a signal handler may raise them there.

CPython runs signal handlers in the main thread, between two bytecodes: after a call, at the end of a loop's turn and at
the start of a function. `Interrupter` raises at the n-th of these points that the traced code comes to, so that a test can
go through all of them. It takes the points after calls of functions written in Python along, where CPython runs no handler.
"""

from __future__ import annotations

import dis
import gc
import sys
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any

import ottla

PACKAGE = ottla.__file__.rpartition("/")[0]
CHECKS = frozenset(
    code
    for name, code in dis.opmap.items()
    if name.startswith(("CALL", "RESUME", "JUMP_BACKWARD", "POP_JUMP_BACKWARD"))
)
"""The opcodes after which CPython may run a signal handler."""
LOAD_SPECIAL = dis.opmap.get("LOAD_SPECIAL", -1)
"""Since Python 3.14 the opcode before the call of `__enter__` in a `with` statement. An exception after that call leaves the context
open, as its body is not protected yet: no program can prevent that.
"""


class Interrupted(BaseException):
    """Raised by a test where a signal handler might raise."""


class Interrupter:
    """A context in which `error` is raised at the point numbered `at`; `points` counts those that were passed."""

    def __init__(self, at: int, error: type[BaseException] = Interrupted, skip: tuple[str, ...] = ()) -> None:
        self.at = at
        self.points = 0
        self.place = ""
        """The function and line at which the error was raised."""
        self._error = error
        self._skip = skip
        self._before: Any = None
        self._collected = True
        """True if the garbage collector was on before."""

    def __enter__(self) -> Interrupter:
        self._before = sys.gettrace()
        self._collected = gc.isenabled()
        gc.disable()  # an error that is raised while garbage of another test is finalized is only reported
        sys.settrace(self._trace)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.settrace(self._before)
        if self._collected:
            gc.enable()

    @property
    def happened(self) -> bool:
        """True if the error was raised."""
        return self.points > self.at

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(PACKAGE) or name.endswith(self._skip):
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        code = frame.f_code.co_code
        checked = False
        last = -1

        def trace(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal checked, last
            if event == "opcode":
                due, checked = checked, code[frame.f_lasti] in CHECKS and last != LOAD_SPECIAL
                last = code[frame.f_lasti]
                if due:
                    self._come_to(frame)
            return trace

        return trace

    def _come_to(self, frame: FrameType) -> None:
        self.points += 1
        if self.points == self.at + 1:
            self.place = f"{frame.f_code.co_qualname} ({frame.f_code.co_filename}:{frame.f_lineno})"
            sys.settrace(None)
            raise self._error(self.place)


def every_point(start: int = 0, step: int = 1, misses: int = 1, **settings: Any) -> Iterator[Interrupter]:
    """Yield an interrupter for each point, until one was not reached `misses` times in a row.

    A call may pass fewer points than the next one, for example a poll whose records have already arrived.
    """
    at, missed = start, 0
    while missed < misses:
        interrupter = Interrupter(at, **settings)
        yield interrupter
        if interrupter.happened:
            at, missed = at + step, 0
        else:
            missed += 1
