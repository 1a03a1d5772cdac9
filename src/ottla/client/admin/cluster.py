"""A cluster as an admin sees it.

Values only.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.model import Node


class ClusterDescription(NamedTuple):
    """Who is there."""

    nodes: tuple[Node, ...]
