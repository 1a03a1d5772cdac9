"""The last word of a member to its coordinator.

Told whether the coordinator is known; a member that has lost it looks for a moment, and then goes without a word.
"""

from __future__ import annotations

import logging
from typing import Any

from ottla.client.consumer.generation import NO_GENERATION
from ottla.client.consumer.membership.step import Find, Forget, Send, Step, Wait
from ottla.model import Node

FOREVER = float("inf")
FAREWELL_SECONDS = 1.0
"""How long a member that leaves looks for a coordinator it has lost; after that its session runs out by itself."""
WHERE = "{where}"
LEFT = "the consumer leaves by itself"
POLL_EXPIRED = (
    "poll() was not called for max.poll.interval.ms: the records of one poll take longer than that. "
    "Raise max.poll.interval.ms, or lower max.poll.records"
)


class Farewell:
    """What is to be said, and whether it has been."""

    def __init__(self, timeout_ms: int, news: list[tuple[int, str]]) -> None:
        self.news = news
        self._timeout_ms = timeout_ms
        self._message: Any = None
        self._text = ""
        self._reason = ""
        self._until = -FOREVER
        self._sent: Send | None = None
        self._busy = False

    @property
    def is_due(self) -> bool:
        """Whether it is still to be said."""
        return self._message is not None

    @property
    def is_pending(self) -> bool:
        """Whether it was said, and the coordinator has not answered."""
        return self._sent is not None

    def say(self, message: Any, text: str, reason: str, now: float, *, busy: bool = False) -> None:
        """Have this sent; `busy`: the coordinator holds a request of ours, and reads nothing else before it answers.

        `text` tells who leaves how; WHERE in it stands for the coordinator.
        """
        self._busy = self._busy or busy
        self._message, self._text, self._reason = message, text, reason
        self._until = now + FAREWELL_SECONDS

    def decide(self, now: float, coordinator: Node | None) -> Step:
        """The next thing to do while it is due."""
        if self._busy:
            self._busy = False
            return Forget("leaving while the group rebalances", find_anew=False)
        if coordinator is None and now < self._until:
            return Find(self._until - now)
        message, self._message = self._message, None
        if coordinator is None:
            self._tell(logging.INFO, "cannot say that this member leaves: no coordinator; its session will run out")
            return Wait(0.0)
        self._tell(logging.INFO, self._text.replace(WHERE, f"{coordinator} (id: {coordinator.node_id} rack: null)"))
        self._sent = Send(message, self._timeout_ms, NO_GENERATION, self._reason)
        return self._sent

    def heard(self, sent: Send) -> bool:
        """Whether it was this that has an outcome now."""
        if self._sent is None or sent is not self._sent:
            return False
        self._sent = None
        return True

    def _tell(self, level: int, text: str) -> None:
        self.news.append((level, text))
