"""Addresses, and how people may see them."""

from __future__ import annotations

from urllib.parse import urlsplit

from ottla.ports import HIGHEST_PORT, is_port


def check_port(url: str) -> None:
    """ValueError where a port of an address can be none."""
    if (port := wrong_port(url)) is not None:
        raise ValueError(f"port {port!r} is none, which is a number up to {HIGHEST_PORT}; correct it")


def wrong_port(url: str) -> str | None:
    """The first port of an address that can be none; None where all can, or are not known yet."""
    host = urlsplit(url).netloc.rpartition("@")[2] if "://" in url and "${" not in url else ""
    for one in host.split(","):  # PostgreSQL's may name several servers
        port = one.rpartition("]")[2].partition(":")[2]
        if port and not (is_port(port) and int(port)):
            return port
    return None


def shown(url: str) -> str:
    """The address without user, password and what follows its path, all of which may be secret."""
    if "://" not in url:
        return url  # a placeholder
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
