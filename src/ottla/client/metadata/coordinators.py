"""Constants of FindCoordinator, and the text for a coordinator in logs."""

from __future__ import annotations

from ottla.model import Node

GROUP, TRANSACTION = 0, 1
"""The key types of FindCoordinator."""
FIRST_OF_COORDINATORS = 2**31 - 1
"""A group coordinator's node id counts down from here, as in the Java client, so that it gets a connection of its own. On
the connection for fetches its responses would wait behind a fetch that waits for data.
"""
LAST_VERSION_WITH_ONE_KEY = 3
"""Later versions of FindCoordinator take several."""


def describe_node(node: Node) -> str:
    """Return the text for a coordinator in logs."""
    return f"{node} (id: {node.node_id} rack: {node.rack or 'null'})"
