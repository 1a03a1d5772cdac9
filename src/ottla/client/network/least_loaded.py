"""The choice of a broker for requests that any broker can answer, such as Metadata and FindCoordinator.

Pure. A broker that accepts connections but sends no response, for example while it starts, is avoided after a second, and
another connection is opened. A broker that is cut off from the others still returns itself as the leader of its partitions.
So a doubted one (`ConnectionStates.is_doubted`) is used only if there is no other, even if it is the only one connected.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ottla.client.network.connection_states import ConnectionStates
from ottla.client.network.in_flight_requests import InFlightRequests
from ottla.model import Node


def choose_least_loaded(
    nodes: Sequence[Node],
    states: ConnectionStates,
    in_flight: InFlightRequests,
    now: float,
    slow: Collection[Node] = (),
) -> Node | None:
    """Return the best node, the first of equally good ones; None if each is in its backoff.

    One with a slow connection, or which is among `slow`, is returned only if there is no other.
    """
    prompt = [node for node in nodes if node not in slow and not states.is_slow(node.node_id, now)]
    trusted = [node for node in prompt if not states.is_doubted(node.node_id)]
    for among in (trusted, prompt, nodes):
        found = choose_quickest(among, states, in_flight, now)
        if found is not None:
            return found
    return None


def choose_quickest(
    nodes: Sequence[Node], states: ConnectionStates, in_flight: InFlightRequests, now: float
) -> Node | None:
    """Return a ready node, else one with an opening connection, else one that may be connected to."""
    ready = [node for node in nodes if states.is_ready(node.node_id, now) and in_flight.can_send_more(node.node_id)]
    if ready:
        return min(ready, key=lambda node: in_flight.count(node.node_id))
    for node in nodes:
        if states.is_opening(node.node_id, now):
            return node
    return next((node for node in nodes if states.can_connect(node.node_id, now)), None)
