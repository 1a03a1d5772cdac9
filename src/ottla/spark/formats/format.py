"""The interface of formats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa


@dataclass(frozen=True)
class Decoded:
    """A decoded column, with the length of the encoded one."""

    values: pa.Array[Any]
    errors: Mapping[int, str] = field(default_factory=dict)
    """The error of each row that could not be decoded completely; its value has the fields that could be read."""


class Format(Protocol):
    def decode(self, column: pa.Array[Any]) -> Decoded:
        """Return the decoded values of a binary column; null for null."""
        ...
