"""Members whose consumer nobody has closed: dropped, or still there when the process ends.

They leave their group, so that others have the partitions at once. They commit nothing: whether what was polled was also
processed nobody can say, and so it is read again.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

from ottla.client.consumer.consumer_core import ConsumerCore
from ottla.client.runtime.exits import EXITS

FAREWELL_SECONDS = 3.0
"""How long the end of the process waits until a member has said that it leaves."""


class Farewells:
    """The end of one consumer that is not closed."""

    def __init__(self, face: Any, core: ConsumerCore) -> None:
        self._core: ConsumerCore | None = core
        self._leaving: threading.Thread | None = None
        self._dropped = weakref.finalize(face, self._drop)
        self._dropped.atexit = False
        EXITS.add(self._at_exit)

    def detach(self) -> None:
        self._core = None
        self._dropped.detach()
        EXITS.remove(self._at_exit)

    def _drop(self) -> None:
        """Nobody has it any more: begin to leave, and close its own connections; waits for nobody."""
        core = self._leave()
        if self._leaving is None:
            EXITS.remove(self._at_exit)
        if core is not None:
            core.closed = True
            core.client.close()

    def _leave(self) -> ConsumerCore | None:
        core, self._core = self._core, None
        if core is not None and core.coordinator is not None:
            self._leaving = core.coordinator.abandon()
        return core

    def _at_exit(self) -> None:
        """Another thread may be in the middle of a call, so that its connections stay."""
        self._dropped.detach()
        self._leave()
        if self._leaving is not None:
            self._leaving.join(FAREWELL_SECONDS)
