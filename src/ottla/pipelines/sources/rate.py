"""`type: rate`: numbered rows at a steady pace, for trying things out."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ottla.pipelines.sources.source import Source


class RateSource(Source):
    """Rows with the columns `timestamp` and `value`, which counts from 0."""

    type: Literal["rate"]
    rows_per_second: int = Field(default=1, ge=1)
    """How many rows each second."""
    rows: int | None = Field(default=None, ge=1)
    """How many there are in all; without it they never end."""

    def describe(self) -> str:
        return f"rate {self.rows_per_second}/s"

    def identity(self) -> str:
        return "rate"
