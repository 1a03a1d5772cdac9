"""A picture of a consumer: a box for each part, with the part's name."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ottla.cli.live import panel
from ottla.escaping import escape_controls

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ottla.client.consumer.snapshot import ConsumerSnapshot, CoordinatorView, HeartbeatView, NetworkView
    from ottla.trace import Moment

BAR = 8
HIGHEST_BROKER = 2**30
MOST_PARTITIONS = 12
"""The number of partitions shown by default."""
WHOLE = 500
"""The number of partitions shown if all are requested."""
RATE_SECONDS = 3.0
"""The window for records per second."""
ALARMING = 0.8
"""The share of max.poll.interval.ms from which on the poll gap is shown in red."""


class EventRate:
    """Counts of a consumer's events, for the picture."""

    def __init__(self) -> None:
        self.records = 0
        self.fetches = 0
        self.heartbeats = 0
        self.longest_gap_ms = 0.0
        self._recent: deque[tuple[int, int]] = deque()

    def count(self, moment: Moment) -> None:
        from ottla.client.consumer import events  # for start-up time

        match moment.event:
            case events.HandedOut(records=records):
                self.records += records
                self._recent.append((moment.at_ms, records))
            case events.FetchCompleted(error=""):
                self.fetches += 1
            case events.HeartbeatAnswered(error=""):
                self.heartbeats += 1
            case events.Polled(gap_ms=gap_ms):
                self.longest_gap_ms = max(self.longest_gap_ms, gap_ms)

    def rate(self, now_ms: float) -> float:
        """Return records per second over the last `RATE_SECONDS`."""
        while self._recent and self._recent[0][0] < now_ms - RATE_SECONDS * 1000:
            self._recent.popleft()
        return sum(records for _, records in self._recent) / RATE_SECONDS


def draw_consumer(seen: ConsumerSnapshot, pace: EventRate, *, whole: bool = False) -> RenderableType:
    """Return the picture, in the order of the data flow: network and fetcher, membership, and some or all partitions."""
    from rich.console import Group
    from rich.table import Table

    boxes = Table.grid(expand=True)
    boxes.add_column(ratio=1)
    boxes.add_column(ratio=1)
    network = panel("ConsumerNetworkClient", network_lines(seen.network), folds=whole)
    boxes.add_row(network, panel("Fetcher", fetcher_lines(seen, pace), folds=whole))
    if seen.coordinator is not None:
        coordinator = panel("ConsumerCoordinator", coordinator_lines(seen.coordinator, pace), folds=whole)
        boxes.add_row(coordinator, panel("HeartbeatThread", heartbeat_lines(seen.heartbeat, pace), folds=whole))
    return Group(boxes, subscription(seen, WHOLE if whole else MOST_PARTITIONS))


def network_lines(network: NetworkView) -> list[str]:
    return [
        f"unsent      {requests_of(network.unsent)}",
        f"in flight   {requests_of(network.in_flight_requests)}",
        f"to complete {network.pending_completion}",
    ]


def requests_of(by_node: Mapping[int, Iterable[Any]]) -> str:
    """Return requests by node: `node 1: Fetch 120 ms`."""
    parts = [
        f"{node_name(node)}: " + ", ".join(f"{request.api} {request.age_ms:.0f} ms" for request in requests)
        for node, requests in sorted(by_node.items())
    ]
    return "; ".join(parts) or "none"


def node_name(node_id: int) -> str:
    """Return the name of a node. Connections to a coordinator or to bootstrap addresses have ids that no broker has."""
    if node_id < 0:
        return "bootstrap"
    return "coordinator" if node_id > HIGHEST_BROKER else f"node {node_id}"


def fetcher_lines(seen: ConsumerSnapshot, pace: EventRate) -> list[str]:
    fetcher = seen.fetcher
    share = fetcher.buffered_bytes / fetcher.memory_limit_bytes
    pending = ", ".join(f"node {node}" for node in fetcher.nodes_with_pending_fetch) or "none"
    return [
        f"fetching    {pending}",
        f"completed   {len(fetcher.completed_fetches)} waiting, {pace.fetches} so far",
        f"buffer      {fetcher.buffered_bytes / 2**20:.1f} of {fetcher.memory_limit_bytes / 2**20:.0f} MiB {share_bar(share)}",
        f"returned    {pace.records} records, {pace.rate(time.time() * 1000):.0f}/s",
    ]


def coordinator_lines(coordinator: CoordinatorView, pace: EventRate) -> list[str]:
    gap = coordinator.poll_gap_ms or 0.0
    share = gap / coordinator.max_poll_interval_ms
    alarm = ["leaving soon: poll!"] if share >= ALARMING else []
    return [
        f"group     {coordinator.group_id} at {coordinator.node or 'unknown'}",
        f"member    {coordinator.member_id or 'none yet'}",
        f"state     {coordinator.state}, generation {coordinator.generation}",
        f"poll gap  {gap:.0f} of {coordinator.max_poll_interval_ms:.0f} ms {share_bar(share)}",
        *alarm,
        f"commits   {coordinator.pending_commits} under way",
    ]


def heartbeat_lines(heartbeat: HeartbeatView | None, pace: EventRate) -> list[str]:
    if heartbeat is None:
        return ["not started"]
    silence = heartbeat.silence_ms or 0.0
    session = heartbeat.session_timeout_ms
    known = session < float(
        "inf"
    )  # with group.protocol=consumer it is a setting of the broker, which clients do not know
    coming = "none due" if heartbeat.next_ms is None else f"in {heartbeat.next_ms:.0f} ms"
    return [
        f"next      {coming}, {pace.heartbeats} answered",
        f"silence   {silence:.0f}" + (f" of {session:.0f} ms {share_bar(silence / session)}" if known else " ms"),
        f"in flight {requests_of(heartbeat.network.in_flight_requests)}",
        f"poll gaps {pace.longest_gap_ms:.0f} ms at most",
    ]


def subscription(seen: ConsumerSnapshot, most: int) -> RenderableType:
    """Return the table of `SubscriptionState`: a row for each partition."""
    from rich.table import Table

    table = Table(box=None, title="SubscriptionState", title_justify="left", title_style="", header_style="dim")
    for name in ("PARTITION", "POSITION", "LAG", "BUFFERED"):
        table.add_column(name, justify="left" if name == "PARTITION" else "right")
    table.add_column("")
    views = seen.subscription.partitions
    fullest = max((view.buffered_records for view in views), default=0) or 1
    for view in views[:most]:
        table.add_row(
            escape_controls(view.partition) + (" paused" if view.paused else ""),
            "?" if view.position is None else str(view.position),
            "?" if view.lag is None else str(view.lag),
            str(view.buffered_records),
            share_bar(view.buffered_records / fullest) if view.buffered_records else "",
        )
    if len(views) > most:
        table.add_row(f"and {len(views) - most} more", "", "", "", "")
    if not views:
        table.add_row("nothing assigned", "", "", "", "")
    return table


def share_bar(share: float) -> str:
    """Return a share from 0 to 1 as a bar."""
    full = round(max(0.0, min(1.0, share)) * BAR)
    return "█" * full + "░" * (BAR - full)
