"""A proxy that cuts connections at a byte: in the middle of a request, or of an answer."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from random import Random

CHUNK = 65_536
PATIENCE = 30.0


class CuttingProxy:
    """A proxy between clients and a broker that advertises its address.

    Each of the first `cuts` connections carries up to `most_bytes` in one direction, then both ends are closed. If a
    response is cut off, the client cannot know the result of its request.
    """

    def __init__(self, cuts: int, most_bytes: int, random: Random) -> None:
        self.target: tuple[str, int] = ("", 0)
        self.left = cuts
        self._most_bytes = most_bytes
        self._random = random
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._accept, name="cutting-proxy", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Take no more connections. A thread that waits for one would otherwise keep the port open, and take the next."""
        with suppress(OSError):  # which not every system lets a listener do
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(PATIENCE)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                broker = socket.create_connection(self.target)
            except OSError:
                client.close()
                continue
            there, back = self._budgets()
            for source, sink, budget in ((client, broker, there), (broker, client, back)):
                threading.Thread(target=relay, args=(source, sink, budget), daemon=True).start()

    def _budgets(self) -> tuple[int | None, int | None]:
        """The number of bytes allowed in each direction; None for all."""
        with self._lock:
            if self.left <= 0:
                return None, None
            self.left -= 1
            budget = self._random.randrange(1, self._most_bytes)
            return (budget, None) if self._random.random() < 0.5 else (None, budget // 20 + 1)


def relay(source: socket.socket, sink: socket.socket, budget: int | None) -> None:
    """Pass bytes on until one end is gone or the budget is used up, then end both."""
    try:
        while data := source.recv(CHUNK if budget is None else min(CHUNK, budget)):
            sink.sendall(data)
            if budget is not None:
                budget -= len(data)
                if budget <= 0:
                    break
    except OSError:
        pass
    for end in (source, sink):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        end.close()
