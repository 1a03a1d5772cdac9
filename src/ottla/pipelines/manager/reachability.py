"""Checks that the brokers of a pipeline are available, before a command with a waiting user.

Requests after this check have the clients' usual timeouts: a slow cluster is not an absent one.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping

from ottla.client.admin import Admin
from ottla.client.network.bootstrap import bootstrap_nodes

PATIENCE = {"default.api.timeout.ms": "5000"}
"""The default; a timeout in the pipeline file takes precedence."""
LISTENING_SECONDS = 4.0
"""The time to wait for a listener at the addresses of brokers. The operating system accepts connections even if the
broker is busy.
"""
ATTEMPT_SECONDS = 1.0
PAUSE_SECONDS = 0.1


def ensure_reachable(clients: Mapping[str, str]) -> None:
    """Raise NoBrokersAvailableError if no broker answers within that time."""
    with Admin({**PATIENCE, **clients}) as admin:
        admin.describe_cluster()


def has_listener(clients: Mapping[str, str]) -> bool:
    """Return True if a process listens at one of the addresses now or within `LISTENING_SECONDS`."""
    protocol = clients.get("security.protocol", "PLAINTEXT").upper()
    nodes = bootstrap_nodes([one for one in clients["bootstrap.servers"].split(",") if one.strip()], protocol=protocol)
    until = time.monotonic() + LISTENING_SECONDS
    while True:
        if any(is_listening(node.host, node.port) for node in nodes):
            return True
        if time.monotonic() > until:
            return False
        time.sleep(PAUSE_SECONDS)


def is_listening(host: str, port: int) -> bool:
    """Return True if a connection is accepted."""
    try:
        socket.create_connection((host, port), ATTEMPT_SECONDS).close()
    except OSError:
        return False
    return True
