"""A consumer drawn as boxes, under the names of its parts."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ottla.cli.live import panel
from ottla.escaping import escape_controls

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ottla.cli.tracing.trace import Pace
    from ottla.client.consumer.snapshot import ConsumerSnapshot, CoordinatorView, HeartbeatView, NetworkView

BAR = 8
HIGHEST_BROKER = 2**30
MOST_PARTITIONS = 12
"""How many partitions are drawn."""
WHOLE = 500
"""How many where all are wanted."""
ALARMING = 0.8
"""From this share of max.poll.interval.ms on the gap is red."""


def picture(seen: ConsumerSnapshot, pace: Pace, *, whole: bool = False) -> RenderableType:
    """Everything, top to bottom as data flows: network and fetcher, membership, partitions: a few, or all."""
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
    """Requests by node: `node 1: Fetch 120 ms`."""
    parts = [
        f"{called(node)}: " + ", ".join(f"{request.api} {request.age_ms:.0f} ms" for request in requests)
        for node, requests in sorted(by_node.items())
    ]
    return "; ".join(parts) or "none"


def called(node_id: int) -> str:
    """A node; connections to a coordinator, and those before the first metadata, have ids that no broker has."""
    if node_id < 0:
        return "bootstrap"
    return "coordinator" if node_id > HIGHEST_BROKER else f"node {node_id}"


def fetcher_lines(seen: ConsumerSnapshot, pace: Pace) -> list[str]:
    fetcher = seen.fetcher
    share = fetcher.buffered_bytes / fetcher.memory_limit_bytes
    pending = ", ".join(f"node {node}" for node in fetcher.nodes_with_pending_fetch) or "nobody"
    return [
        f"asked       {pending}",
        f"completed   {len(fetcher.completed_fetches)} waiting, {pace.fetches} so far",
        f"buffer      {fetcher.buffered_bytes / 2**20:.1f} of {fetcher.memory_limit_bytes / 2**20:.0f} MiB {bar(share)}",
        f"handed out  {pace.records} records, {pace.rate(time.time() * 1000):.0f}/s",
    ]


def coordinator_lines(coordinator: CoordinatorView, pace: Pace) -> list[str]:
    gap = coordinator.poll_gap_ms or 0.0
    share = gap / coordinator.max_poll_interval_ms
    alarm = ["leaving soon: poll!"] if share >= ALARMING else []
    return [
        f"group     {coordinator.group_id} at {coordinator.node or 'nobody known'}",
        f"member    {coordinator.member_id or 'none yet'}",
        f"state     {coordinator.state}, generation {coordinator.generation}",
        f"poll gap  {gap:.0f} of {coordinator.max_poll_interval_ms:.0f} ms {bar(share)}",
        *alarm,
        f"commits   {coordinator.pending_commits} under way",
    ]


def heartbeat_lines(heartbeat: HeartbeatView | None, pace: Pace) -> list[str]:
    if heartbeat is None:
        return ["not started"]
    silence = heartbeat.silence_ms or 0.0
    session = heartbeat.session_timeout_ms
    known = session < float("inf")  # with group.protocol=consumer it is the broker's, who does not tell it
    coming = "none due" if heartbeat.next_ms is None else f"in {heartbeat.next_ms:.0f} ms"
    return [
        f"next      {coming}, {pace.heartbeats} answered",
        f"silence   {silence:.0f}" + (f" of {session:.0f} ms {bar(silence / session)}" if known else " ms"),
        f"in flight {requests_of(heartbeat.network.in_flight_requests)}",
        f"poll gaps {pace.longest_gap_ms:.0f} ms at most",
    ]


def subscription(seen: ConsumerSnapshot, most: int) -> RenderableType:
    """`SubscriptionState`: a row for each partition."""
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
            bar(view.buffered_records / fullest) if view.buffered_records else "",
        )
    if len(views) > most:
        table.add_row(f"and {len(views) - most} more", "", "", "", "")
    if not views:
        table.add_row("nothing assigned", "", "", "", "")
    return table


def bar(share: float) -> str:
    """A share from 0 to 1 as a bar."""
    full = round(max(0.0, min(1.0, share)) * BAR)
    return "█" * full + "░" * (BAR - full)
