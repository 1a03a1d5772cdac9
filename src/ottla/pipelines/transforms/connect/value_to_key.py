"""`ValueToKey`: the key is made of fields of the value."""

from __future__ import annotations

from typing import ClassVar

from ottla.pipelines.transforms.connect.connect_transform import ConnectTransform, Names


class ValueToKey(ConnectTransform):
    """The key becomes a record of fields of the value; `ExtractField$Key` then makes it one of them."""

    has_parts: ClassVar[bool] = False
    fields: Names
    """The fields."""
