"""A cluster as an admin sees it. Values only."""

from __future__ import annotations

from typing import NamedTuple

from ottla.model import Node


class ClusterDescription(NamedTuple):
    """The brokers of a cluster and its controller."""

    nodes: tuple[Node, ...]
    """The running brokers."""
    controller: Node | None
    """The broker to send controller requests to. With KRaft it is any broker, which forwards them."""
    cluster_id: str | None
    authorized_operations: frozenset[str] | None = None
    """The operations that the client's user may perform on the cluster, such as `create` and `alter`; None if not
    requested.
    """
    fenced_nodes: tuple[Node, ...] = ()
    """Registered brokers that are fenced: stopped, starting, or disconnected (KIP-1073). Empty if not requested."""
