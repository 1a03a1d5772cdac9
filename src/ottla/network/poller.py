"""Waiting for sockets: `select.epoll` directly where there is one, else the `selectors` module.

Answers which file descriptors are ready; knows nothing about what they are.

A process that was stopped for longer than it meant to wait comes back with nothing, whatever has come meanwhile: the signal that
wakes it ends the wait, and its time is over. So who finds nothing looks once more before others are thought to be silent.
"""

from __future__ import annotations

import select
import selectors
import sys
from typing import Protocol

READ = 1
WRITE = 4
BROKEN = 8
"""The connection is over in both directions; reported whether or not it was asked for."""
ENDED = 0x2000
"""The peer sends no more; what it sent before may be unread. Reported by epoll alone."""


class Poller(Protocol):
    """Level-triggered readiness of file descriptors; an interest of 0 keeps quiet about one."""

    def register(self, fd: int, interest: int) -> None: ...

    def modify(self, fd: int, interest: int) -> None: ...

    def unregister(self, fd: int) -> None: ...

    def poll(self, timeout: float | None) -> list[tuple[int, int]]:
        """Pairs of descriptor and readiness; None waits for as long as it takes."""
        ...

    def fileno(self) -> int:
        """A descriptor that is readable when `poll` would answer something."""
        ...

    def close(self) -> None: ...


def default_poller() -> Poller:
    """The quickest one there is. gevent and eventlet take `epoll` away, which knows nothing of their threads, and give a selector that does."""
    return EpollPoller() if sys.platform == "linux" and hasattr(select, "epoll") else SelectorsPoller()


if sys.platform == "linux":

    class EpollPoller:
        """Linux: one dictionary lookup and two system calls cheaper than `selectors`."""

        # The flags are epoll's own numbers, so nothing is translated on the way in.
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
    """Everywhere else (kqueue, poll), and in tests."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def register(self, fd: int, interest: int) -> None:
        if interest & (READ | WRITE):
            self._selector.register(fd, self._events(interest))

    def modify(self, fd: int, interest: int) -> None:
        # `selectors` refuses an empty interest: a quiet descriptor is not registered at all.
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
