"""The assignors there are."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.coordination.groups.consumer.group_spec import PartitionAssignor
from ottla.coordination.groups.consumer.range_assignor import assign_ranges
from ottla.coordination.groups.consumer.uniform_assignor import assign_uniformly

ASSIGNORS: Mapping[str, PartitionAssignor] = {"uniform": assign_uniformly, "range": assign_ranges}
"""The assignors that `group.consumer.assignors` may name."""
