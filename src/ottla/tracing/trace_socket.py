"""The socket of one traced client or broker, which sends its events to each connection as JSON lines.

 The first line identifies the process. Each later line has the events since the previous one, complete while `dropped`
is 0, and a snapshot of all parts. Nothing is read from a connection. Without connections the thread sleeps and no event
is recorded. A forked process has no such thread, and does not touch its parent's socket.
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
from ottla.tracing.frames import FACTS, encode_line, facts_by_kind, shorten_moment
from ottla.tracing.plain import convert_value

LOG = logging.getLogger(__name__)

VARIABLE = "OTTLA_TRACE"
"""The environment variable with the folder of the sockets."""
TURN_SECONDS = 0.1
"""The interval between two lines."""
SLOW_SECONDS = 1.0
"""The time after which a connection that does not accept a line is closed."""
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
    """Return a socket in the `folder` that `setting` names. If it cannot be created, log a warning and return None.

    The `facts` are added to the first line.
    """
    path = Path(folder) / f"{kind}-{os.getpid()}-{next(NUMBERS)}.sock"
    try:
        listener = listening_at(path)
    except (OSError, AttributeError) as error:  # a system without Unix sockets has no AF_UNIX
        LOG.warning("%s=%r: tracing of %s failed (%s): use a writable folder with a short path",
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
    """Return a Unix socket that only this user can connect to."""
    path.parent.mkdir(0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)  # left by a killed process with the same pid
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(str(path))
        path.chmod(0o600)  # before any process can connect
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
        self._hello = encode_line(hello)
        self._events = events
        self._snapshot = snapshot
        self._pid = os.getpid()
        self._watchers: list[socket.socket] = []
        self._recording: Trace | None = None
        self._ended, self._ending = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, name=f"ottla-trace-{path.stem}", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Delete the socket file and stop the thread, without waiting. May be called again."""
        if os.getpid() == self._pid and self._ending.fileno() >= 0:
            self.path.unlink(missing_ok=True)
            self._ending.close()

    def close(self) -> None:
        """Stop, and wait until the connections have received the last events."""
        self.end()
        if os.getpid() == self._pid and threading.current_thread() is not self._thread:
            self._thread.join(SLOW_SECONDS)

    def _serve(self) -> None:
        with selectors.DefaultSelector() as selector, self._ended, self._listener:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._ended, selectors.EVENT_READ)
            while not self._run_once(selector):
                pass
            self._send_events()
        for watcher in self._watchers:
            watcher.close()

    def _run_once(self, selector: selectors.BaseSelector) -> bool:
        """Run one iteration; return true after the last one."""
        ready = {key.fileobj for key, _ in selector.select(TURN_SECONDS if self._watchers else None)}
        if self._ended in ready:
            return True
        if self._listener in ready:
            self._accept()
        self._send_events()
        return False

    def _accept(self) -> None:
        with suppress(OSError):
            watcher, _ = self._listener.accept()
            watcher.settimeout(SLOW_SECONDS)
            if len(self._watchers) >= MOST_WATCHERS:
                watcher.close()
            elif send_line(watcher, self._hello):
                self._watchers.append(watcher)
                self._recording = self._recording or self._events.trace()

    def _send_events(self) -> None:
        if self._recording is None:
            return
        frame = encode_line(
            {
                "at_ms": int(time.time() * 1000),
                "events": shorten_moment(self._recording.take_recorded()),
                "dropped": self._recording.dropped,
                "snapshot": convert_value(self._snapshot()),
            }
        )
        self._watchers = [watcher for watcher in self._watchers if send_line(watcher, frame)]
        if not self._watchers:
            self._recording.close()
            self._recording = None


def send_line(watcher: socket.socket, data: bytes) -> bool:
    """Send a line; close the connection and return false if it is not accepted in time."""
    try:
        watcher.sendall(data)
    except OSError:
        watcher.close()
        return False
    return True
