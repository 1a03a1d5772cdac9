"""What a broker is besides where it has joined a cluster: let in, sent away, and gone when it has handed over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call, Outcome
from ottla.broker.timers import Timers
from ottla.clock import Clock
from ottla.errors import OttlaError
from ottla.network.listener import Listener

if TYPE_CHECKING:
    from ottla.broker.controllers.membership import Membership

LEAVING_SECONDS = 30.0
"""How long it waits at most until what it leads is led elsewhere."""


class Joined:
    """A broker's membership, and what the broker does about it."""

    def __init__(
        self,
        membership: Membership,
        timers: Timers,
        clock: Clock,
        call_soon: Callable[[Callable[[], None]], None],
        end: Callable[[], None],
        fail: Callable[[OttlaError], None],
    ) -> None:
        """`end` ends the broker at once, `fail` too, and says why."""
        self.on_serving: Callable[[], None] = lambda: None
        """Called when the controllers let the broker in for the first time."""
        self._membership = membership
        self._timers = timers
        self._clock = clock
        self._call_soon = call_soon
        self._end = end
        self._fail = fail
        self._leaving = False
        self._started = False
        membership.on_serving = self._let_in
        membership.on_end = self._sent_away

    def start(self) -> None:
        self._started = True
        self._membership.start()

    def leave(self) -> bool:
        """Begin to hand over, in any thread; False where the broker is to end without that."""
        if self._leaving or not self._started:
            return False
        self._leaving = True
        self._call_soon(self._end_in_time)
        self._membership.leave()
        return True

    def forward(self, call: Call, frame: bytes) -> Outcome:
        """Hand a client's request on to the controllers."""
        return self._membership.forwarder.forward(call, frame)

    def close(self) -> None:
        if self._started:
            self._membership.close()

    def _end_in_time(self) -> None:
        self._timers.at(self._clock.monotonic() + LEAVING_SECONDS, self._end)

    def _let_in(self) -> None:
        tell, self.on_serving = self.on_serving, lambda: None
        tell()

    def _sent_away(self, error: OttlaError | None) -> None:
        if error is None:
            self._end()
        else:
            self._fail(error)


def join(
    node: BrokerNode,
    listeners: Mapping[Listener, str],
    call_soon: Callable[[Callable[[], None]], None],
    end: Callable[[], None],
    fail: Callable[[OttlaError], None],
) -> Joined:
    """Make a broker that has these listeners one of the cluster's; nothing is said to anybody before `start`."""
    from ottla.broker.controllers.membership import Membership, listeners_of  # only where there is a cluster

    told = listeners_of(node.config, {name: each.address for each, name in listeners.items()})
    membership = Membership(node.config, node.directory, node.observed, told, node.clock, call_soon)
    membership.on_applied = node.topics.observed
    node.make_topic = membership.errands.make_topic
    node.producer_ids.fetch = lambda: membership.errands.fetch_producer_ids(node.producer_ids)
    return Joined(membership, node.timers, node.clock, call_soon, end, fail)
