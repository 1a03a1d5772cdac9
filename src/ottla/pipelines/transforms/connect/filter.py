"""`Filter`: records go of which a predicate holds."""

from __future__ import annotations

from typing import ClassVar

from ottla.pipelines.transforms.connect.connect_transform import ConnectTransform


class Filter(ConnectTransform):
    """Leaves out the records of which its predicate holds, or with `negate` the others."""

    has_parts: ClassVar[bool] = False
    predicate: str
    """The name of one of the pipeline's `predicates`."""
