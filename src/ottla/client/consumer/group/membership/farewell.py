"""The last word of a member to its coordinator.

Told whether the coordinator is known, and what became of the word: where it was not heard it is said again. A member
that has lost its coordinator looks for it a moment, and then goes without a word.
"""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

from ottla.client.consumer.config import ConsumerConfig
from ottla.client.consumer.coordinator.generation import NO_GENERATION
from ottla.client.consumer.group.membership.retry import Retry
from ottla.client.consumer.group.membership.step import Disconnect, Find, Send, Step, Wait
from ottla.client.metadata.coordinators import described
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.model import FOREVER, Node

FAREWELL_SECONDS = 1.0
"""How long a member that leaves looks for a coordinator it has lost; after that its session runs out by itself."""
WHERE = "{where}"
LEFT = "the consumer leaves by itself"
POLL_EXPIRED = (
    "poll() was not called for max.poll.interval.ms: the records of one poll take longer than that. "
    "Raise max.poll.interval.ms, or lower max.poll.records"
)


class Word(NamedTuple):
    message: Any
    text: str
    """Who leaves how, for the log; WHERE in it stands for the coordinator."""
    reason: str


class Farewell:
    """What is to be said, and whether it has been."""

    def __init__(self, config: ConsumerConfig, backoff: ExponentialBackoff, news: list[tuple[int, str]]) -> None:
        self.news = news
        self._timeout_ms = config.request_timeout_ms
        self._session = config.session_timeout_ms / 1000
        self._retry = Retry(backoff)
        self._word: Word | None = None
        self._due = False
        self._until = -FOREVER
        self._alone_since: float | None = None
        self._sent: Send | None = None
        self._nameless: Send | None = None
        self._busy = False

    @property
    def is_due(self) -> bool:
        """Whether it is still to be said."""
        return self._due

    def wait(self, now: float) -> float:
        """Seconds for which the coordinator is to be listened to, before this is over; infinity until it answers."""
        if self._sent is not None:
            return FOREVER
        return 0.0 if self._nameless is None else max(0.0, self._until - now)

    def say(self, word: Word, now: float, *, busy: bool = False, until: float = FOREVER) -> None:
        """Have this sent, and sent again up to `until` where it is not heard: no longer than the member's session lasts.

        `busy`: the coordinator holds a request of ours, and reads nothing else before it answers.
        """
        self._busy = self._busy or busy
        self._word, self._due = word, True
        self._until = min(until, now + self._session)
        self._alone_since = None
        self._retry.succeeded()
        self._retry.skip_wait()

    def await_name(self, joining: Send, now: float) -> None:
        """The member leaves before it knows the name that the answer to this will give it, and the group wait for."""
        self._nameless, self._until = joining, now + FAREWELL_SECONDS

    def is_named_by(self, sent: Send) -> bool:
        """Whether it was this that was awaited."""
        if self._nameless is None or sent is not self._nameless:
            return False
        self._nameless = None
        return True

    def decide(self, now: float, coordinator: Node | None) -> Step:
        """The next thing to do while it is due."""
        assert self._word is not None
        if self._busy:
            self._busy = False
            return Disconnect("leaving while the group rebalances", find_anew=False)
        if coordinator is None:
            return self._look_for_it(now)
        self._alone_since = None
        if now < self._retry.at:
            return Wait(self._retry.at - now)
        self._due = False
        self._tell(logging.INFO, self._word.text.replace(WHERE, described(coordinator)))
        self._sent = Send(self._word.message, self._timeout_ms, NO_GENERATION, self._word.reason)
        return self._sent

    def heard(self, sent: Send) -> bool:
        """Whether it was this that has an outcome now."""
        if self._sent is None or sent is not self._sent:
            return False
        self._sent = None
        return True

    def failed(self, what: str, why: object, now: float) -> None:
        """The outcome was that nobody has listened: it is due again, if there is time."""
        self._due = self._retry.failed(now) < self._until
        more = "it is said again" if self._due else "this member's session will run out"
        self._tell(logging.INFO, f"{what} failed with error: {why}; {more}")

    def cancel(self) -> None:
        """It is not to be said any more: the member comes back."""
        self._due = False

    def _look_for_it(self, now: float) -> Step:
        if self._alone_since is None:
            self._alone_since = now
        patience = min(self._alone_since + FAREWELL_SECONDS, self._until) - now
        if patience > 0:
            return Find(patience)
        self._due = False
        self._tell(logging.INFO, "cannot say that this member leaves: no coordinator; its session will run out")
        return Wait(0.0)

    def _tell(self, level: int, text: str) -> None:
        self.news.append((level, text))
