"""What this process, in which a test's broker is, holds open of connections that the test made."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from socket import socket

import psutil


def both_ends_of(clients: Iterable[socket]) -> set[str]:
    """These connections as they are open here, each end by its name in the system.

    Only these are counted where a test asks what was left open: a client of another test may find its old port again
    at this test's broker, and stay.
    """
    ends = set()
    for client in clients:
        with suppress(OSError):  # the broker has hung up already
            ends.add(frozenset((client.getsockname(), client.getpeername())))
    connections = psutil.Process().net_connections("tcp4")
    ours = [each.fd for each in connections if frozenset((tuple(each.laddr), tuple(each.raddr))) in ends]
    return {os.readlink(f"/proc/self/fd/{fd}") for fd in ours}


def open_descriptors() -> set[str]:
    """Whatever is open here, by the same names."""
    opened = set()
    for fd in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # closed while we look
            opened.add(os.readlink(f"/proc/self/fd/{fd}"))
    return opened
