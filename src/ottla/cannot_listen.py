"""Listening sockets of HTTP servers, and the error text for an address that a server cannot bind."""

from __future__ import annotations

import errno
import os
import socket


def cannot_listen(error: OSError, host: str, port: int, option: str | None = None) -> str:
    """Return what failed, the reason and the remedy; `option` names the option of the address."""
    another = f"choose another with {option}" if option else "choose another"
    higher = f"choose a higher one with {option}" if option else "choose a higher one"
    reasons = {
        errno.EADDRINUSE: f"the port is taken by another process: {another}, or 0 for a free one",
        errno.EADDRNOTAVAIL: "this machine has no such address",
        errno.EACCES: f"ports below 1024 need privileges: {higher}",
    }
    number = error.errno or 0
    reason = reasons.get(number) or error.strerror or (os.strerror(number) if number else str(error))
    return f"cannot listen on {host}:{port}: {reason}"


def open_http_listener(host: str, port: int, option: str = "--listen") -> socket.socket:
    """Return a listening socket whose connections send at once; raise OSError with the option's name if the address is not usable.

    asyncio sets TCP_NODELAY only for sockets that name TCP as their protocol, and `create_server` does not. Without it, a
    response with head and body in two writes takes 40 ms.
    """
    try:
        listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise OSError(error.errno, cannot_listen(error, host, port, option)) from None
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
