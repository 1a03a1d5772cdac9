"""The descriptors that the broker in this process holds open for connections of a test."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from socket import socket

import psutil


def both_ends_of(clients: Iterable[socket]) -> set[str]:
    """Return the sockets of these connections at both ends."""
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
        with suppress(FileNotFoundError):  # closed during the listing
            opened.add(os.readlink(f"/proc/self/fd/{fd}"))
    return opened
