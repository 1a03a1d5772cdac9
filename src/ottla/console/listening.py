"""The address of a console, taken before anything else is done.

Needs no extra, so `ottla broker --console` can take it before the broker is there.
"""

from __future__ import annotations

import socket

from ottla.cannot_listen import cannot_listen


def listener_at(host: str, port: int, option: str = "--listen") -> socket.socket:
    """A socket that listens; OSError, which says why and names the option, where that address cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise OSError(error.errno, cannot_listen(error, host, port, option)) from None
