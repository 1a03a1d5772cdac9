"""`MaskField`: fields become empty, or what is said."""

from __future__ import annotations

from ottla.pipelines.model import Scalar
from ottla.pipelines.transforms.connect.connect_transform import ConnectTransform, Names


class MaskField(ConnectTransform):
    """Fields become what is empty in their type: 0, false, "", no items; or `replacement`."""

    fields: Names
    """The fields."""
    replacement: Scalar | None = None
    """What text and numbers become instead."""
