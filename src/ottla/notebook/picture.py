"""The picture of a consumer as a JSON value: its parts, its partitions, and its last events. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from ottla.client.consumer.snapshot import ConsumerSnapshot
from ottla.trace import Moment

MOST_EVENTS = 60
MOST_PARTITIONS = 50
REBALANCE = frozenset({"RebalanceStarted", "Joined", "JoinRefused", "Synced", "Assigned", "Revoked", "Lost", "Left"})
FETCH = frozenset({"FetchSent", "FetchCompleted", "Buffered"})
KINDS = {
    **dict.fromkeys(REBALANCE, "rebalance"),
    **dict.fromkeys(FETCH, "fetch"),
    "HandedOut": "records",
    "Polled": "poll",
}
"""The lane of each kind of event; others are `group`: heartbeats and commits."""


class Picture:
    """Keeps the last events and totals of one consumer."""

    def __init__(self) -> None:
        self._events: deque[dict[str, Any]] = deque(maxlen=MOST_EVENTS)
        self._totals = {"polls": 0, "records": 0, "fetches": 0, "bytes": 0, "rebalances": 0}

    def add(self, moments: Iterable[Moment]) -> None:
        """Add events in their order."""
        for moment in moments:
            event, name = moment.event, type(moment.event).__name__
            self._count(name, event)
            self._events.append(
                {"at_ms": moment.at_ms, "name": name, "lane": KINDS.get(name, "group"), "text": str(event)[:200]}
            )

    def _count(self, name: str, event: Any) -> None:
        match name:
            case "Polled":
                self._totals["polls"] += 1
            case "HandedOut":
                self._totals["records"] += event.records
            case "FetchCompleted":
                self._totals["fetches"] += 1
                self._totals["bytes"] += event.size_bytes
            case "RebalanceStarted":
                self._totals["rebalances"] += 1

    def to_json(self, snapshot: ConsumerSnapshot) -> dict[str, Any]:
        """Return the picture of a moment."""
        group, parts = snapshot.coordinator, snapshot.subscription.partitions
        return {
            "client": snapshot.client_id,
            "topics": list(snapshot.subscription.topics),
            "totals": dict(self._totals),
            "fetcher": {
                "pending": list(snapshot.fetcher.nodes_with_pending_fetch),
                "buffered_bytes": snapshot.fetcher.buffered_bytes,
                "limit_bytes": snapshot.fetcher.memory_limit_bytes,
            },
            "group": None
            if group is None
            else {
                "id": group.group_id,
                "state": group.state,
                "generation": group.generation,
                "poll_gap_ms": group.poll_gap_ms,
                "limit_ms": group.max_poll_interval_ms,
            },
            "partitions": [
                {
                    "name": str(one.partition),
                    "position": one.position,
                    "lag": one.lag,
                    "paused": one.paused,
                    "records": one.buffered_records,
                    "bytes": one.buffered_bytes,
                }
                for one in parts[:MOST_PARTITIONS]
            ],
            "more_partitions": max(0, len(parts) - MOST_PARTITIONS),
            "events": list(self._events),
        }
