"""Detection of a broker process that has ended, by connecting to its port.

    it disconnects, or is silent after a failover ──► connect ──► refused: the process has ended
                                                              └─► connected, or no answer: its session decides

Without the probe, the leaders of a killed broker would be replaced only after its session timeout. A refused connection is
proof; a stopped process or a network partition refuses nothing, so there the session decides. The port of a killed process may stay
open a little longer than its connections, so the probe is repeated after short pauses.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable

PAUSES_SECONDS = (0.0, 0.02, 0.1, 0.3)
CONNECT_SECONDS = 1.0
Incarnation = tuple[int, int]
"""The node id and the broker epoch."""


class LivenessProbes:
    """Probes in its own threads; `on_gone` is called in them."""

    def __init__(
        self, on_gone: Callable[[Incarnation], None], is_gone: Callable[[str, int], bool] | None = None
    ) -> None:
        self._on_gone = on_gone
        self._is_gone = is_gone or refuses_connections
        self._running: set[Incarnation] = set()

    def start_probe(self, who: Incarnation, host: str, port: int) -> None:
        """Probe a broker, unless it is being probed already. `on_gone` is called if its process has ended."""
        if who not in self._running:
            self._running.add(who)
            threading.Thread(target=self._probe, args=(who, host, port), name="ottla-absences", daemon=True).start()

    def _probe(self, who: Incarnation, host: str, port: int) -> None:
        gone = self._is_gone(host, port)
        self._running.discard(who)
        if gone:
            self._on_gone(who)


def refuses_connections(host: str, port: int, pause: Callable[[float], None] = time.sleep) -> bool:
    """Return True if the host refuses connections to the port."""
    for seconds in PAUSES_SECONDS:
        pause(seconds)
        try:
            with socket.create_connection((host, port), CONNECT_SECONDS) as connected:
                if connected.getsockname() == connected.getpeername():
                    return True  # a self-connection: TCP can connect a free local port to itself
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False
