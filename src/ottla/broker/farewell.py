"""The last answers of a broker that closes: they leave, and are taken, as far as there is time."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping

from ottla.clock import Clock
from ottla.network.selector import Selector

SENDING_SECONDS = 3.0
"""How long a closing broker goes on sending answers that are under way."""
GOODBYE_SECONDS = 0.5
"""How long it waits for those whom it answered last to take that and hang up."""


class Farewell:
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
        self.begun = False
        """Whether the broker is to stop: nothing more is read, and what is answered is answered last."""
        self.answered_last: set[Hashable] = set()
        """Connections that were answered when the broker was to stop already."""

    def send_the_rest(self) -> None:
        """Give answers that are on their way a moment to leave, and those that wait behind them."""
        self._poll_while(self._is_sending, SENDING_SECONDS)

    def say_goodbye(self) -> None:
        """Wait until the last answers have been taken, as far as the clients show it."""
        self.answered_last &= self._connections.keys()
        for channel_id in self.answered_last:
            self._selector.end_sending(channel_id)
        self._poll_while(lambda: bool(self.answered_last & self._connections.keys()), GOODBYE_SECONDS)

    def _is_sending(self) -> bool:
        return any(self._selector.queued_bytes(channel_id) for channel_id in self._connections)

    def _poll_while(self, condition: Callable[[], bool], seconds: float) -> None:
        """Go on as long as `condition` holds and there is time."""
        deadline = self._clock.monotonic() + seconds
        while condition():
            now = self._clock.monotonic()
            if now >= deadline:
                break
            self._selector.poll(deadline - now)
            self._take_news(self._clock.monotonic())
