"""What a client's log says of connections that ended or did not come about.

A consumer has two network clients, its user's and its heartbeat's: what both meet with at once is told once.
"""

from __future__ import annotations

import logging
import threading

from ottla.client.network.connection_states import ConnectionState, NodeConnectionState
from ottla.model import FOREVER

LOG = logging.getLogger(__name__)
AT_ONCE_SECONDS = 10.0
"""As long as a broker that refused a login is left alone."""


class Complaints:
    """Of one client, whichever thread tells them."""

    def __init__(self, client_id: str) -> None:
        self._client_id = client_id
        self._lock = threading.Lock()
        self._last = ("", -FOREVER)

    def tell(self, broker: str, before: NodeConnectionState, reason: str, now: float) -> None:
        """A warning, but for what was told just now: of this connection the last time, or by the other client."""
        what = "lost" if before.state is ConnectionState.READY else "cannot reach"
        line = f"{what} {broker}: {reason}"
        again = self._was_just_told(line, now) or before.reason == reason
        LOG.log(logging.DEBUG if again else logging.WARNING, "[%s] %s", self._client_id, line)

    def _was_just_told(self, line: str, now: float) -> bool:
        with self._lock:
            last, at = self._last
            if last == line and now - at < AT_ONCE_SECONDS:
                return True
            self._last = (line, now)
            return False
