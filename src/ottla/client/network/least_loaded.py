"""Which broker to ask what any broker can answer: for metadata, or who coordinates a group.

Pure. A broker that accepts connections and answers nothing, as one that is starting, is left aside after a second: another is
connected to beside it. A broker that is cut off from the others does not know it, and names itself as the leader of what others lead by now. So
one that is in doubt (`ConnectionStates.is_doubted`) is asked only where nobody else can be, though it be the only one connected.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ottla.client.network.connection_states import ConnectionStates
from ottla.client.network.in_flight_requests import InFlightRequests
from ottla.model import Node


def least_loaded(
    nodes: Sequence[Node],
    states: ConnectionStates,
    in_flight: InFlightRequests,
    now: float,
    slow: Collection[Node] = (),
) -> Node | None:
    """The first of those that are equally good; None where each has to be left alone for a while.

    One whose connection is slow, or which is among `slow`, is returned only if there is no other.
    """
    prompt = [node for node in nodes if node not in slow and not states.is_slow(node.node_id, now)]
    trusted = [node for node in prompt if not states.is_doubted(node.node_id)]
    for among in (trusted, prompt, nodes):
        found = quickest(among, states, in_flight, now)
        if found is not None:
            return found
    return None


def quickest(nodes: Sequence[Node], states: ConnectionStates, in_flight: InFlightRequests, now: float) -> Node | None:
    """A ready one, else one on its way, else one to connect to."""
    ready = [node for node in nodes if states.is_ready(node.node_id, now) and in_flight.can_send_more(node.node_id)]
    if ready:
        return min(ready, key=lambda node: in_flight.count(node.node_id))
    for node in nodes:
        if states.is_on_its_way(node.node_id, now):
            return node
    return next((node for node in nodes if states.can_connect(node.node_id, now)), None)
