"""What can be asked for rows from a position on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import pyarrow as pa

Position = Mapping[str, Any]
"""How far a feed is, as JSON; it has no secrets, for Spark writes it down."""
Write = Callable[[pa.RecordBatch], None]


class Feed(Protocol):
    """Rows that come from elsewhere. Made where the pipeline is built and copied to Spark's driver: it opens nothing before it
    is asked.
    """

    most: int
    """The most rows of a batch."""
    portion: int
    """The most rows that it is asked for at once: a batch has several portions where it goes ahead."""
    goes_ahead: bool
    """Whether it may be asked for more before it is told that what it gave is in the sink."""

    @property
    def dead_letters(self) -> int:
        """Rows that were put aside since it was made."""

    def poll(self, position: Position | None, write: Write) -> Position | None:
        """Write the rows after `position`, None being the beginning, and say how far they go; none where there are none."""

    def settle(self, position: Position | None) -> None:
        """All rows up to here are in the sink; not told to one that goes ahead."""

    def freeze(self) -> None:
        """From now on only what is there now counts."""

    def close(self) -> None:
        """Let go of what is open."""
