"""`type: console`: rows in the terminal, for trying things out."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ottla.pipelines.sinks.sink import Sink


class ConsoleSink(Sink):
    """Each batch as a table on standard output."""

    type: Literal["console"]
    rows: int = Field(default=20, ge=1)
    """The most rows of a batch that are shown."""
