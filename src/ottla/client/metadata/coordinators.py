"""Constants of FindCoordinator, and the text for a coordinator in logs."""

from __future__ import annotations

from ottla.model import Node

GROUP, TRANSACTION = 0, 1
"""The key types of FindCoordinator."""
LAST_VERSION_WITH_ONE_KEY = 3
"""Later versions of FindCoordinator take several."""


def described(node: Node) -> str:
    """Return the text for a coordinator in logs."""
    return f"{node} (id: {node.node_id} rack: {node.rack or 'null'})"
