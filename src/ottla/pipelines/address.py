"""Addresses as people may see them."""

from __future__ import annotations

from urllib.parse import urlsplit


def shown(url: str) -> str:
    """The address without user, password and what follows its path, all of which may be secret."""
    if "://" not in url:
        return url  # a placeholder
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
