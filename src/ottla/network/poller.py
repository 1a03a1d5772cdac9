"""Wait for sockets: `select.epoll` if available, else the `selectors` module.

A poller reports ready file descriptors, and does not know their meaning.

A process that was stopped (SIGSTOP) for longer than its timeout gets an empty result when it continues, even if data
arrived: the signal ends the wait, and the timeout is over. Therefore an empty result is polled once more before peers
are considered silent.
"""

from __future__ import annotations

import os
import select
import selectors
import sys
from typing import Protocol

VARIABLE = "OTTLA_POLLER"
READ = 1
WRITE = 4
BROKEN = 8
"""The connection is closed in both directions; always reported."""
ENDED = 0x2000
"""The peer sends no more; earlier bytes may be unread. Reported only by epoll."""


class Poller(Protocol):
    """Level-triggered readiness of file descriptors; an interest of 0 disables reports for one."""

    def register(self, fd: int, interest: int) -> None: ...

    def modify(self, fd: int, interest: int) -> None: ...

    def unregister(self, fd: int) -> None: ...

    def poll(self, timeout: float | None) -> list[tuple[int, int]]:
        """Return pairs of descriptor and readiness; a timeout of None waits without limit."""
        ...

    def fileno(self) -> int:
        """Return a descriptor that is readable if `poll` would return a result."""
        ...

    def close(self) -> None: ...


def default_poller() -> Poller:
    """Return the fastest poller; OTTLA_POLLER=selectors in the environment selects the portable one."""
    # gevent and eventlet remove `epoll`, which blocks their threads, and patch `selectors`.
    if sys.platform == "linux" and hasattr(select, "epoll") and os.environ.get(VARIABLE) != "selectors":
        return EpollPoller()
    return SelectorsPoller()


if sys.platform == "linux":

    class EpollPoller:
        """Linux: cheaper than `selectors` by one dictionary lookup and two system calls."""

        # The constants equal epoll's numbers, so that interests need no translation.
        assert (select.EPOLLIN, select.EPOLLOUT, select.EPOLLERR) == (READ, WRITE, BROKEN)
        assert select.EPOLLRDHUP == ENDED

        def __init__(self) -> None:
            self._epoll = select.epoll()
            self.register = self._epoll.register
            self.modify = self._epoll.modify
            self.unregister = self._epoll.unregister
            self.fileno = self._epoll.fileno
            self.close = self._epoll.close

        def poll(self, timeout: float | None) -> list[tuple[int, int]]:
            ready = self._epoll.poll(timeout)
            if not ready and timeout:
                ready = self._epoll.poll(0)
            for i, (fd, flags) in enumerate(ready):
                if flags & select.EPOLLHUP:
                    ready[i] = (fd, flags | BROKEN)
            return ready


class SelectorsPoller:
    """The poller for other systems (kqueue, poll), and for tests."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def register(self, fd: int, interest: int) -> None:
        if interest & (READ | WRITE):
            self._selector.register(fd, self._events(interest))

    def modify(self, fd: int, interest: int) -> None:
        # `selectors` rejects an empty interest, so such a descriptor is not registered.
        if not interest & (READ | WRITE):
            self.unregister(fd)
        elif fd in self._selector.get_map():
            self._selector.modify(fd, self._events(interest))
        else:
            self.register(fd, interest)

    def unregister(self, fd: int) -> None:
        if fd in self._selector.get_map():
            self._selector.unregister(fd)

    def poll(self, timeout: float | None) -> list[tuple[int, int]]:
        ready = self._selector.select(timeout)
        if not ready and timeout:
            ready = self._selector.select(0)
        return [(key.fd, self._flags(events)) for key, events in ready]

    def fileno(self) -> int:
        fileno = getattr(self._selector, "fileno", None)
        if fileno is None:
            raise OSError("this platform's poll() has no file descriptor that an event loop could watch")
        return int(fileno())

    def close(self) -> None:
        self._selector.close()

    @staticmethod
    def _events(interest: int) -> int:
        read = selectors.EVENT_READ if interest & READ else 0
        return read | (selectors.EVENT_WRITE if interest & WRITE else 0)

    @staticmethod
    def _flags(events: int) -> int:
        read = READ if events & selectors.EVENT_READ else 0
        return read | (WRITE if events & selectors.EVENT_WRITE else 0)
