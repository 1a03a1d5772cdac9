"""The open files of segments, limited so that descriptors are left for connections.

    of 1,024 descriptors   128 for everything else | 128 to 512 for segments | up to 768 for clients' connections

The files that were used longest ago are closed when descriptors are needed, and reopened at their next use. All threads may call.
Segments may have half of all descriptors while few clients are connected, and release some as connections are opened.
Connections never get the segments' smallest share, so that a log can always create a segment.
"""

from __future__ import annotations

import errno
import resource
import threading
import weakref
from pathlib import Path
from typing import Protocol

from ottla.storage.files.open_file import OpenFile

SHARE = 2
"""One descriptor in so many may be a log's."""
LEAST_SHARE = 8
"""One descriptor in so many is kept for logs, however many connections there are."""
LEAST_RESERVE = 64
RESERVED_PART = 8
"""One in so many descriptors is neither for segments nor for connections: indexes, checkpoints, peers."""
UNLIMITED = 65_536
"""Files that are enough where the system sets no bound."""


class Holder(Protocol):
    """An owner of an open file that can be closed and reopened."""

    used: int
    """The value of `OpenFiles.opened` when the file was last used."""

    def drop_file(self) -> None:
        """Drop the reference to the file; code that is using it has its own."""


class OpenFiles:
    """The holders of open files. The time of use is a count of opened files, because reading a clock would cost more than the rest."""

    def __init__(self, limit: int | None = None) -> None:
        """`limit` is half of what the process may open unless it is given."""
        self.opened = 0
        """How many were ever opened."""
        self._limit = limit
        self._is_shared = limit is None
        self._connections = 0
        self._holders: weakref.WeakKeyDictionary[Holder, None] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._holders)

    @property
    def limit(self) -> int:
        if self._limit is None:
            soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
            self._limit = UNLIMITED if soft == resource.RLIM_INFINITY else max(soft // SHARE, 1)
        return self._limit

    @property
    def share(self) -> int:
        """The number of files that may be open now, given the number of connections."""
        if not self._is_shared:
            return self.limit
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if soft == resource.RLIM_INFINITY:
            return self.limit
        return min(self.limit, max(soft - reserve_of(soft) - self._connections, soft // LEAST_SHARE, 1))

    def count_connections(self, change: int) -> None:
        """Take note of descriptors that clients' connections have taken, or given back."""
        with self._lock:
            self._connections += change
        if change > 0 and len(self._holders) > self.share:
            self._close_least_used()

    def open(self, holder: Holder, path: Path, *, create: bool = False, write: bool = False) -> OpenFile:
        """Open the file for `holder`; others are closed if there are too many."""
        try:
            file = OpenFile(path, create=create, write=write)
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE) or not self._close_least_used():
                raise
            file = OpenFile(path, create=create, write=write)
        with self._lock:
            self.opened += 1
            holder.used = self.opened
            self._holders[holder] = None
            crowded = len(self._holders) > self.share
        if crowded:
            self._close_least_used()
        return file

    def remove(self, holder: Holder) -> None:
        """Remove a holder that has closed its file."""
        with self._lock:
            self._holders.pop(holder, None)

    def _close_least_used(self) -> int:
        """Close the quarter that was used least lately, so that this is rare; how many were closed."""
        with self._lock:
            oldest = sorted(self._holders, key=lambda holder: holder.used)
            closed = oldest[: -(-len(oldest) // 4)]
            for holder in closed:
                del self._holders[holder]
                holder.drop_file()
        return len(closed)


def reserve_of(descriptors: int) -> int:
    """Return how many descriptors are for neither segments nor connections."""
    return max(LEAST_RESERVE, descriptors // RESERVED_PART)


def connections_of(descriptors: int) -> int:
    """Return the maximum number of connections with that many descriptors."""
    return max(descriptors - reserve_of(descriptors) - descriptors // LEAST_SHARE, 1)


OPEN_FILES = OpenFiles()
"""The open files of this process: the system limits descriptors per process."""
