"""`HoistField`: the whole becomes a field."""

from __future__ import annotations

from ottla.pipelines.transforms.connect.connect_transform import ConnectTransform


class HoistField(ConnectTransform):
    """The key or the value becomes a record with one field, which is what it was."""

    field: str
    """The field's name."""
