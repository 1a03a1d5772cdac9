"""Names in SQL."""

from __future__ import annotations


def quote_identifier(name: str) -> str:
    """Return a name quoted as standard SQL does, in double quotes; MySQL uses another quote."""
    return '"' + name.replace('"', '""') + '"'
