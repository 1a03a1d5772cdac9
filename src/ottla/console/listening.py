"""The address of a console, taken before anything else is done.

Needs no extra, so `ottla broker --console` can take it before the broker is there.
"""

from __future__ import annotations

import errno
import os
import socket

from ottla.errors import ConfigError


def listener_at(host: str, port: int, option: str = "--listen") -> socket.socket:
    """A socket that listens; ConfigError, which names the option, where that address cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        why = "is taken" if error.errno == errno.EADDRINUSE else f"cannot be had ({os.strerror(error.errno or 0)})"
        raise ConfigError(f"{host}:{port} {why}; choose another with {option}, port 0 for a free one") from None
