"""Facts about coordinators, the brokers that keep groups and transactions, for all who look for one."""

from __future__ import annotations

from ottla.model import Node

GROUP, TRANSACTION = 0, 1
"""The kinds of keys, as FindCoordinator numbers them."""
LAST_VERSION_WITH_ONE_KEY = 3
"""Later versions of FindCoordinator take several."""


def described(node: Node) -> str:
    """A coordinator as the logs show it."""
    return f"{node} (id: {node.node_id} rack: {node.rack or 'null'})"
