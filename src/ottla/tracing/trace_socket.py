"""The socket of one traced client or broker: who connects is sent what happens in it, line by line.

The first line says who this is; each further one has the events since the line before, none left out while `dropped` is 0, and
all parts as they are now. Nothing is read from who looks. Without anybody who looks the thread sleeps and nothing is recorded.
A process that was forked has no thread here, and leaves its parent's socket alone.
"""

from __future__ import annotations

import itertools
import logging
import os
import selectors
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ottla.trace import EventStream, Trace
from ottla.tracing.frames import FACTS, facts_by_kind, line, short
from ottla.tracing.plain import plain

LOG = logging.getLogger(__name__)

VARIABLE = "OTTLA_TRACE"
"""The folder in which traced clients listen."""
TURN_SECONDS = 0.1
"""How often who looks is told."""
SLOW_SECONDS = 1.0
"""Who does not take a line within this is hung up on."""
MOST_WATCHERS = 8
NUMBERS = itertools.count(1)


def maybe_listen(
    kind: str,
    name: str,
    events: EventStream,
    snapshot: Callable[[], Any],
    folder: str,
    setting: str = VARIABLE,
    **facts: str,
) -> TraceSocket | None:
    """A socket in `folder`, which `setting` named; where there can be none all works on without, and the log says why.

    The `facts` are told with the name.
    """
    path = Path(folder) / f"{kind}-{os.getpid()}-{next(NUMBERS)}.sock"
    try:
        listener = listening_at(path)
    except (OSError, AttributeError) as error:  # a system without Unix sockets has no AF_UNIX
        LOG.warning("%s=%r: nobody can look into %s (%s); name a folder of yours by a short path",
                    setting, folder, name, error)  # fmt: skip
        return None
    hello = {
        "kind": kind,
        "client_id": name,
        "pid": os.getpid(),
        "since_ms": int(time.time() * 1000),
        **facts,
        FACTS: facts_by_kind(),
    }
    return TraceSocket(path, listener, hello, events, snapshot)


def listening_at(path: Path) -> socket.socket:
    """A Unix socket that only this user can connect to."""
    path.parent.mkdir(0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)  # of a process that had this number and was killed
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(str(path))
        path.chmod(0o600)  # before anybody can connect
        listener.listen()
    except OSError:
        listener.close()
        raise
    return listener


class TraceSocket:
    """Listens until `close`, in a thread of its own."""

    def __init__(
        self,
        path: Path,
        listener: socket.socket,
        hello: dict[str, Any],
        events: EventStream,
        snapshot: Callable[[], Any],
    ) -> None:
        self.path = path
        self._listener = listener
        self._hello = line(hello)
        self._events = events
        self._snapshot = snapshot
        self._pid = os.getpid()
        self._watchers: list[socket.socket] = []
        self._heard: Trace | None = None
        self._ended, self._ending = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, name=f"ottla-trace-{path.stem}", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Take the file away and have the thread end; waits for nobody. May be called again."""
        if os.getpid() == self._pid and self._ending.fileno() >= 0:
            self.path.unlink(missing_ok=True)
            self._ending.close()

    def close(self) -> None:
        """End, and wait until who looks has the last events."""
        self.end()
        if os.getpid() == self._pid and threading.current_thread() is not self._thread:
            self._thread.join(SLOW_SECONDS)

    def _serve(self) -> None:
        with selectors.DefaultSelector() as selector, self._ended, self._listener:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._ended, selectors.EVENT_READ)
            while not self._turn(selector):
                pass
            self._tell_all()
        for watcher in self._watchers:
            watcher.close()

    def _turn(self, selector: selectors.BaseSelector) -> bool:
        """Whether it was the last."""
        ready = {key.fileobj for key, _ in selector.select(TURN_SECONDS if self._watchers else None)}
        if self._ended in ready:
            return True
        if self._listener in ready:
            self._let_in()
        self._tell_all()
        return False

    def _let_in(self) -> None:
        with suppress(OSError):
            watcher, _ = self._listener.accept()
            watcher.settimeout(SLOW_SECONDS)
            if len(self._watchers) >= MOST_WATCHERS:
                watcher.close()
            elif sent(watcher, self._hello):
                self._watchers.append(watcher)
                self._heard = self._heard or self._events.trace()

    def _tell_all(self) -> None:
        if self._heard is None:
            return
        told = line(
            {
                "at_ms": int(time.time() * 1000),
                "events": short(self._heard.take_told()),
                "dropped": self._heard.dropped,
                "snapshot": plain(self._snapshot()),
            }
        )
        self._watchers = [watcher for watcher in self._watchers if sent(watcher, told)]
        if not self._watchers:
            self._heard.close()
            self._heard = None


def sent(watcher: socket.socket, told: bytes) -> bool:
    """Whether who looks has taken it; otherwise he is hung up on."""
    try:
        watcher.sendall(told)
    except OSError:
        watcher.close()
        return False
    return True
