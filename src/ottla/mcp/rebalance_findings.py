"""Likely causes of a group's rebalances, from its description and the changes that were seen. Pure.

Brokers do not tell clients the cause of a rebalance, so a finding names the observation and the usual remedy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.client.admin import ConsumerGroupDescription

EAGER = frozenset({"range", "roundrobin", "sticky"})
"""Assignors that revoke all partitions of all members at each rebalance."""
JOINED, LEFT = " has joined", " has left or timed out"
"""Ends of the lines of `GroupTimeline`."""


def find_causes(group: ConsumerGroupDescription, assignor: str, changes: Iterable[str]) -> list[str]:
    """Return one sentence per finding; an empty list if the group is stable and nothing was seen.

    `assignor` is the last known one: a description has it only while the group is stable.
    """
    seen = list(changes)
    found = []
    if not group.members:
        found.append("The group has no members: no consumer with this group.id is running and polling.")
    elif group.state not in ("Stable", "Empty"):
        found.append(
            f"The group is in the state {group.state}: its coordinator waits until each member has polled and taken part. A member "
            "that processes records for longer than max.poll.interval.ms delays this, and is then removed."
        )
    idle = [member for member in group.members if not member.assignment]
    if group.state == "Stable" and idle:
        found.append(
            f"{len(idle)} of {len(group.members)} members have no partitions: there are more members than partitions of the topics, or "
            "these members subscribe to other topics. Each of them still causes a rebalance when it joins or leaves."
        )
    found += returning_clients(seen)
    dynamic = [member for member in group.members if not member.group_instance_id]
    if seen_of(seen, (JOINED, LEFT)) and dynamic:
        found.append(
            "Members without group.instance.id cause a rebalance at every restart: with group.instance.id, a restart within "
            "session.timeout.ms causes none."
        )
    if group.type.lower() == "classic" and assignor in EAGER:
        found.append(
            f"The assignor {assignor} stops all members at each rebalance: use "
            "partition.assignment.strategy=cooperative-sticky, or group.protocol=consumer."
        )
    return found


def returning_clients(changes: Sequence[str]) -> list[str]:
    """Return a finding per client that left and joined while the group was watched."""
    left = Counter(client_of(line.removesuffix(LEFT)) for line in seen_of(changes, (LEFT,)))
    joined = Counter(client_of(line.removesuffix(JOINED)) for line in seen_of(changes, (JOINED,)))
    return [
        f"{client} left {times} times and joined {joined[client]} times in this short time: it restarts again and again, or its "
        "processing takes longer than max.poll.interval.ms, or its heartbeats are later than session.timeout.ms."
        for client, times in sorted(left.items())
        if joined[client]
    ]


def seen_of(changes: Iterable[str], ends: tuple[str, ...]) -> list[str]:
    return [line for line in changes if line.endswith(ends)]


def client_of(name: str) -> str:
    """Return the client id in a displayed member."""
    return name.partition(" (")[0].partition(" [")[0]
