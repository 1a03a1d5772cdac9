"""What every format does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa


@dataclass(frozen=True)
class Decoded:
    """A decoded column, as long as what was given."""

    values: pa.Array[Any]
    errors: Mapping[int, str] = field(default_factory=dict)
    """By row, what is wrong there; the row's value is what could be read of it."""


class Format(Protocol):
    def decode(self, column: pa.Array[Any]) -> Decoded:
        """What a column of binary means; null where it is null."""
        ...
