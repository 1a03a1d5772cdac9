"""The last responses of a broker that stops: they are sent, and received by clients, within a time limit."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping

from ottla.clock import Clock
from ottla.network.selector import Selector

SENDING_SECONDS = 3.0
"""The longest time that a closing broker sends responses that are queued."""
GOODBYE_SECONDS = 0.5
"""The longest time that it waits for the clients of the last responses to close their connections."""


class GracefulShutdown:
    """Serves the connections of a broker without new requests."""

    def __init__(
        self,
        selector: Selector,
        clock: Clock,
        connections: Mapping[Hashable, object],
        take_news: Callable[[float], None],
    ) -> None:
        self._selector = selector
        self._clock = clock
        self._connections = connections
        self._take_news = take_news
        self.has_started = False
        """True once the broker stops: no more requests are read, and each response is the connection's last."""
        self.answered_last: set[Hashable] = set()
        """Connections that were answered after the broker began to stop."""

    def send_the_rest(self) -> None:
        """Send the queued responses, and those that wait behind them."""
        self._poll_while(self._is_sending, SENDING_SECONDS)

    def send_last_responses(self) -> None:
        """Wait until the clients of the last responses have disconnected, which shows that they have received them."""
        self.answered_last &= self._connections.keys()
        for channel_id in self.answered_last:
            self._selector.end_sending(channel_id)
        self._poll_while(lambda: bool(self.answered_last & self._connections.keys()), GOODBYE_SECONDS)

    def _is_sending(self) -> bool:
        return any(self._selector.queued_bytes(channel_id) for channel_id in self._connections)

    def _poll_while(self, condition: Callable[[], bool], seconds: float) -> None:
        """Run the selector while `condition` holds, for a limited time."""
        deadline = self._clock.monotonic() + seconds
        while condition():
            now = self._clock.monotonic()
            if now >= deadline:
                break
            self._selector.poll(deadline - now)
            self._take_news(self._clock.monotonic())
