"""A cluster as an admin sees it.

Values only.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.model import Node


class ClusterDescription(NamedTuple):
    """The brokers of a cluster and its controller."""

    nodes: tuple[Node, ...]
    """The brokers that run."""
    controller: Node | None
    """Whom to ask what is the controllers' to decide; with KRaft any broker, which hands it on."""
    cluster_id: str | None
    authorized_operations: frozenset[str] | None = None
    """What this client's user may do with the cluster, `create` and `alter` for instance; None unless it was asked for."""
    fenced_nodes: tuple[Node, ...] = ()
    """Brokers that are registered and fenced: stopped, starting, or cut off (KIP-1073). Empty unless they were asked for."""
