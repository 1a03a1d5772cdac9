"""What becomes of network clients in a child that was forked: their connections stay the parent's."""

from __future__ import annotations

import os
import weakref
from typing import NoReturn, Protocol

from ottla.errors import IllegalStateError


class Disownable(Protocol):
    """What a child lets go of."""

    def disown(self) -> None:
        """Any use is an error from now on."""


class Disowned:
    """What a forked child has for the selector of a client of its parent."""

    def __getattr__(self, name: str) -> NoReturn:
        raise IllegalStateError("this client belongs to the process that forked this one; make a new one here")


OPEN: weakref.WeakSet[Disownable] = weakref.WeakSet()


def disown_all() -> None:
    """A forked child that closed a client would otherwise end what its parent polls."""
    for client in list(OPEN):
        client.disown()
    OPEN.clear()


os.register_at_fork(after_in_child=disown_all)
