"""`Flatten`: fields in fields become fields."""

from __future__ import annotations

from ottla.pipelines.transforms.connect.connect_transform import ConnectTransform


class Flatten(ConnectTransform):
    """A record in a record is taken apart, its fields named `outer.inner`; lists and maps stay."""

    delimiter: str = "."
    """What stands between the names."""
