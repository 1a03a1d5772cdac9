"""Leave the group for consumers that were not closed: garbage collected ones, and those open at process exit.

They leave, so that other members get the partitions at once. They commit nothing: it is unknown whether the last polled
records were processed, so these are read again.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any, Protocol

from ottla.client.consumer.consumer_network_client import ConsumerNetworkClient
from ottla.client.runtime.exits import EXITS

LEAVE_SECONDS = 3.0
"""The longest time in seconds that the process exit waits for a member to leave."""


class Abandonable(Protocol):
    """The membership of a consumer that was not closed."""

    def abandon(self) -> threading.Thread | None: ...


class LeavingCore(Protocol):
    """The core of a consumer."""

    client: ConsumerNetworkClient
    closed: bool

    @property
    def coordinator(self) -> Abandonable | None: ...


class LeaveOnExit:
    """The shutdown of one consumer that was not closed."""

    def __init__(self, face: Any, core: LeavingCore) -> None:
        self._core: LeavingCore | None = core
        self._leaving: threading.Thread | None = None
        self._dropped = weakref.finalize(face, self._drop)
        self._dropped.atexit = False
        EXITS.add(self._at_exit)

    def detach(self) -> None:
        self._core = None
        self._dropped.detach()
        EXITS.remove(self._at_exit)

    def _drop(self) -> None:
        """After garbage collection: start to leave the group, and close the consumer's connections, without waiting."""
        core = self._leave()
        if self._leaving is None:
            EXITS.remove(self._at_exit)
        if core is not None:
            core.closed = True
            core.client.close()

    def _leave(self) -> LeavingCore | None:
        core, self._core = self._core, None
        if core is not None and core.coordinator is not None:
            self._leaving = core.coordinator.abandon()
        return core

    def _at_exit(self) -> None:
        """Leave the group at exit. The connections stay open, because another thread may be in a call."""
        self._dropped.detach()
        self._leave()
        if self._leaving is not None:
            self._leaving.join(LEAVE_SECONDS)
