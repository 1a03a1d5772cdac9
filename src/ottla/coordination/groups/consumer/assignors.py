"""The assignors there are."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.coordination.groups.consumer.range_assignor import assign_ranges
from ottla.coordination.groups.consumer.uniform_assignor import assign_uniformly
from ottla.coordination.groups.consumer.wishes import Assign

ASSIGNORS: Mapping[str, Assign] = {"uniform": assign_uniformly, "range": assign_ranges}
"""What `group.consumer.assignors` may name."""
