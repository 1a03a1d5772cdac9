"""Whether the process of a broker has ended, found out at its port: whoever has hung up may be back in a moment, or never.

    it hangs up, or is not heard of by a new controller ──► connect ──► refused: it is gone
                                                                    └─► connected, or nothing: its session decides

A process that stands still, or that the network hides, refuses nothing: of those only the session tells. A killed one's port may be open
a little longer than its connections.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable

PAUSES_SECONDS = (0.0, 0.02, 0.1, 0.3)
CONNECT_SECONDS = 1.0
Incarnation = tuple[int, int]
"""Number and epoch of a broker."""


class Absences:
    """Looks in threads of its own; `tell` is called in them."""

    def __init__(self, tell: Callable[[Incarnation], None], is_gone: Callable[[str, int], bool] | None = None) -> None:
        self._tell = tell
        self._is_gone = is_gone or refuses
        self._under_way: set[Incarnation] = set()

    def suspect(self, who: Incarnation, host: str, port: int) -> None:
        """Have a look, unless somebody is looking; `tell` is called with who is gone."""
        if who not in self._under_way:
            self._under_way.add(who)
            threading.Thread(target=self._look, args=(who, host, port), name="ottla-absences", daemon=True).start()

    def _look(self, who: Incarnation, host: str, port: int) -> None:
        gone = self._is_gone(host, port)
        self._under_way.discard(who)
        if gone:
            self._tell(who)


def refuses(host: str, port: int, pause: Callable[[float], None] = time.sleep) -> bool:
    """Whether the machine says that nobody listens there."""
    for seconds in PAUSES_SECONDS:
        pause(seconds)
        try:
            with socket.create_connection((host, port), CONNECT_SECONDS) as connected:
                if connected.getsockname() == connected.getpeername():
                    return True  # of a free port TCP may make both ends
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False
