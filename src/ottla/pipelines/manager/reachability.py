"""Whether the brokers of a pipeline are there: asked once, before a command for which a person waits.

What is asked of them afterwards has the clients' own patience: a slow cluster is no absent one.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping

from ottla.client.admin import Admin
from ottla.client.network.bootstrap import bootstrap_nodes

PATIENCE = {"default.api.timeout.ms": "5000"}
"""Where the pipeline's file says another, that counts."""
LISTENING_SECONDS = 4.0
"""How long somebody is looked for who listens at the addresses of brokers: a system answers that however busy it is."""
ATTEMPT_SECONDS = 1.0
PAUSE_SECONDS = 0.1


def ensure_reachable(clients: Mapping[str, str]) -> None:
    """NoBrokersAvailableError where no broker answers within that time."""
    with Admin({**PATIENCE, **clients}) as admin:
        admin.describe_cluster()


def is_anybody_there(clients: Mapping[str, str]) -> bool:
    """Whether somebody listens at one of the addresses, or comes to do so soon."""
    protocol = clients.get("security.protocol", "PLAINTEXT").upper()
    nodes = bootstrap_nodes([one for one in clients["bootstrap.servers"].split(",") if one.strip()], protocol=protocol)
    until = time.monotonic() + LISTENING_SECONDS
    while True:
        if any(listens(node.host, node.port) for node in nodes):
            return True
        if time.monotonic() > until:
            return False
        time.sleep(PAUSE_SECONDS)


def listens(host: str, port: int) -> bool:
    """Whether a connection is taken there."""
    try:
        socket.create_connection((host, port), ATTEMPT_SECONDS).close()
    except OSError:
        return False
    return True
