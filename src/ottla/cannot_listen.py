"""The error text for an address that a server cannot bind."""

from __future__ import annotations

import errno
import os


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
