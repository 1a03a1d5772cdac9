"""The names that are counted one by one, for metrics with names that clients choose."""

from __future__ import annotations

from collections.abc import Hashable

MOST_NAMES = 100
OTHERS = "(others)"
"""The name under which all later names are counted together."""


class BoundedNames:
    """The first hundred names. More could fill the memory."""

    def __init__(self) -> None:
        self._names: set[Hashable] = set()

    def admit(self, name: Hashable) -> bool:
        """Return True if a name is counted by itself, False if with the others."""
        if name in self._names:
            return True
        if len(self._names) >= MOST_NAMES:
            return False
        self._names.add(name)
        return True
