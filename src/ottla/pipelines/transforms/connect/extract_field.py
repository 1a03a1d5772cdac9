"""`ExtractField`: one field instead of the whole."""

from __future__ import annotations

from ottla.pipelines.transforms.connect.connect_transform import ConnectTransform


class ExtractField(ConnectTransform):
    """The key or the value becomes what one of its fields is."""

    field: str
    """The field."""
