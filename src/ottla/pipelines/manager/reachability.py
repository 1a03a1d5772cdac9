"""Whether the brokers of a pipeline are there: asked once, before a command for which a person waits.

What is asked of them afterwards has the clients' own patience: a slow cluster is no absent one.
"""

from __future__ import annotations

from collections.abc import Mapping

from ottla.client.admin import Admin

PATIENCE = {"default.api.timeout.ms": "5000"}
"""Where the pipeline's file says another, that counts."""


def ensure_reachable(clients: Mapping[str, str]) -> None:
    """NoBrokersAvailableError where no broker answers within that time."""
    with Admin({**PATIENCE, **clients}) as admin:
        admin.describe_cluster()
