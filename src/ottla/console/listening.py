"""The listening socket of a console.

This module needs no extra, so that `ottla broker --console` can bind the address before the broker starts.
"""

from __future__ import annotations

import socket

from ottla.cannot_listen import cannot_listen


def listener_at(host: str, port: int, option: str = "--listen") -> socket.socket:
    """Return a listening socket; raise OSError with the option's name if the address is not usable."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise OSError(error.errno, cannot_listen(error, host, port, option)) from None
