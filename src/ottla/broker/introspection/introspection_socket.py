"""The socket for live views of a running broker, in the folder of `trace.folder`: its snapshots and events."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from ottla.broker.event_loop.loop_call import NotInTime, call_in_loop
from ottla.broker.introspection.broker_snapshot import SnapshotBuilder
from ottla.broker.introspection.log_changes import LogChanges
from ottla.broker.introspection.views import BrokerSnapshot
from ottla.broker.network_server.request_counts import RequestCounts
from ottla.broker.network_server.request_latencies import Latencies
from ottla.broker.node import BrokerNode
from ottla.coordination.groups.classic.group import ClassicGroupState
from ottla.coordination.groups.classic.notes import Assigned, Emptied, RebalanceStarted, Stabilized
from ottla.coordination.groups.consumer.notes import EpochBegun
from ottla.errors import KafkaError
from ottla.trace import EventStream
from ottla.tracing.trace_socket import TraceSocket, maybe_listen

SETTING = "trace.folder"
LOOP_SECONDS = 0.5
"""The time that the loop may take for a snapshot; after that the previous one is returned."""
MOST_CAUSES = 1000
STATES: dict[type, ClassicGroupState] = {
    RebalanceStarted: ClassicGroupState.PREPARING_REBALANCE,
    Stabilized: ClassicGroupState.COMPLETING_REBALANCE,
    Assigned: ClassicGroupState.STABLE,
    Emptied: ClassicGroupState.EMPTY,
}
"""The state of the group after each of these events."""


class GroupNoted(NamedTuple):
    """An event of a group, with the state after it."""

    group: str
    state: str
    note: str
    """The kind of note."""
    said: str

    def __str__(self) -> str:
        return self.said if f"({self.state})" in self.said else f"{self.said} ({self.state})"


class IntrospectionSocket:
    """Serves views from its construction until `close`. The broker's loop need not run yet."""

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
        self._picture = SnapshotBuilder(node, self._causes, counts, latencies)
        self._log_changes = LogChanges()
        self._last: BrokerSnapshot | None = None
        self._closed = False
        self.events = node.waiting.events = node.cleaning.events = EventStream(node.clock)
        node.group_listeners.append(self._handle_note)
        name = f"broker {node.config.node_id}"
        self._socket: TraceSocket | None = maybe_listen(
            "broker", name, self.events, self.snapshot, folder, SETTING, cluster=node.cluster_id
        )

    def close(self) -> None:
        self._closed = True
        if self._socket is not None:
            self._socket.close()

    def snapshot(self) -> BrokerSnapshot | None:
        """Return a snapshot, from any thread but the loop's. None before the loop has run."""
        if not self._closed:
            try:
                self._last = call_in_loop(self._call_soon, self._build_snapshot, LOOP_SECONDS)
            except (NotInTime, KafkaError):  # the loop has logged the error
                pass
        return self._last

    def _build_snapshot(self) -> BrokerSnapshot:
        node = self._node
        opened = [each for each in node.partitions if each.opened_log is not None and each.fault is None]
        for event in self._log_changes.find_changes(opened, node.clock.monotonic()):
            self.events.publish(event)
        return self._picture.build(self._connections())

    def _handle_note(self, note: Any) -> None:
        """Record an event of a group, in the loop."""
        if isinstance(note, RebalanceStarted | EpochBegun):
            self._causes[note.group] = note.reason
            self._causes.move_to_end(note.group)
            if len(self._causes) > MOST_CAUSES:
                self._causes.popitem(last=False)
        if self.events.active:
            group = self._node.groups.find_loaded(note.group)
            state = STATES.get(type(note), "gone" if group is None else group.state)
            self.events.publish(GroupNoted(note.group, str(state), type(note).__name__, str(note)))
