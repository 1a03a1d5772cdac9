"""A cluster as an admin sees it.

Values only.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.model import Node


class ClusterDescription(NamedTuple):
    """Who is there."""

    nodes: tuple[Node, ...]
    controller: Node | None
    """Whom to ask what is the controllers' to decide; with KRaft any broker, which hands it on."""
    cluster_id: str | None
    authorized_operations: frozenset[str] | None = None
    """What this client's user may do with the cluster, `create` and `alter` for instance; None unless it was asked for."""
