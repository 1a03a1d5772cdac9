"""The window of a running broker: its socket in the folder that `trace.folder` names, and what is told there."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from ottla.broker.inside.log_changes import LogChanges
from ottla.broker.inside.picture import Picture
from ottla.broker.inside.views import BrokerSnapshot
from ottla.broker.loop_call import NotInTime, call_in_loop
from ottla.broker.node import BrokerNode
from ottla.broker.requests.latencies import Latencies
from ottla.broker.requests.request_counts import RequestCounts
from ottla.coordination.groups.classic.group import ClassicGroupState
from ottla.coordination.groups.classic.notes import Assigned, Emptied, RebalanceStarted, Stabilized
from ottla.coordination.groups.consumer.notes import EpochBegun
from ottla.errors import KafkaError
from ottla.trace import EventStream
from ottla.tracing.trace_socket import TraceSocket, maybe_listen

SETTING = "trace.folder"
LOOP_SECONDS = 0.5
"""How long the loop may take for a picture; where it takes longer the one before is shown again."""
MOST_CAUSES = 1000
STATES: dict[type, ClassicGroupState] = {
    RebalanceStarted: ClassicGroupState.PREPARING_REBALANCE,
    Stabilized: ClassicGroupState.COMPLETING_REBALANCE,
    Assigned: ClassicGroupState.STABLE,
    Emptied: ClassicGroupState.EMPTY,
}
"""In which state these notes leave a group, which one decision may take through several."""


class GroupNoted(NamedTuple):
    """Something happened in a group, and its state after it."""

    group: str
    state: str
    note: str
    """The kind of note."""
    said: str

    def __str__(self) -> str:
        return self.said if f"({self.state})" in self.said else f"{self.said} ({self.state})"


class Window:
    """From the moment it is made until `close`. The broker's loop need not run yet."""

    def __init__(
        self,
        folder: str,
        node: BrokerNode,
        counts: RequestCounts,
        latencies: Latencies,
        call_soon: Callable[[Callable[[], None]], None],
        connections: Callable[[], int],
    ) -> None:
        self._node = node
        self._call_soon = call_soon
        self._connections = connections
        self._causes: OrderedDict[str, str] = OrderedDict()
        self._picture = Picture(node, self._causes, counts, latencies)
        self._log_changes = LogChanges()
        self._last: BrokerSnapshot | None = None
        self._closed = False
        self.events = node.waiting.events = node.cleaning.events = EventStream(node.clock)
        node.groups.listeners.append(self._noted)
        name = f"broker {node.config.node_id}"
        self._socket: TraceSocket | None = maybe_listen(
            "broker", name, self.events, self.snapshot, folder, SETTING, cluster=node.cluster_id
        )

    def close(self) -> None:
        self._closed = True
        if self._socket is not None:
            self._socket.close()

    def snapshot(self) -> BrokerSnapshot | None:
        """How all is, as the loop has it; from any other thread. None before the loop has run."""
        if not self._closed:
            try:
                self._last = call_in_loop(self._call_soon, self._take, LOOP_SECONDS)
            except (NotInTime, KafkaError):  # what goes wrong in the loop the broker's log says
                pass
        return self._last

    def _take(self) -> BrokerSnapshot:
        node = self._node
        opened = [each for each in node.partitions if each.opened_log is not None and each.fault is None]
        for event in self._log_changes.look(opened, node.clock.monotonic()):
            self.events.tell(event)
        return self._picture.take(self._connections())

    def _noted(self, note: Any) -> None:
        """In the loop, after the group has changed."""
        if isinstance(note, RebalanceStarted | EpochBegun):
            self._causes[note.group] = note.reason
            self._causes.move_to_end(note.group)
            if len(self._causes) > MOST_CAUSES:
                self._causes.popitem(last=False)
        if self.events.active:
            group = self._node.groups.known(note.group)
            state = STATES.get(type(note), "gone" if group is None else group.state)
            self.events.tell(GroupNoted(note.group, str(state), type(note).__name__, str(note)))
