"""`Drop`: the key or the value becomes null; `DropHeaders`: headers go."""

from __future__ import annotations

from typing import ClassVar

from ottla.pipelines.transforms.connect.connect_transform import ConnectTransform, Names


class Drop(ConnectTransform):
    """The key (`Drop$Key`) or the value becomes null."""


class DropHeaders(ConnectTransform):
    """Headers of these names go."""

    has_parts: ClassVar[bool] = False
    headers: Names
