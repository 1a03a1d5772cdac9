"""The interface of feeds, which are polled for rows from a position."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import pyarrow as pa

Position = Mapping[str, Any]
"""The progress of a feed as JSON. It has no secrets, because Spark writes it to the offset log."""
Write = Callable[[pa.RecordBatch], None]


class Feed(Protocol):
    """Rows from a source outside of Kafka.

    A feed is made where the pipeline is built and copied to Spark's driver, so it opens nothing before the first call.
    """

    most: int
    """The most rows of a batch."""
    portion: int
    """The most rows of a poll. With `fetches_ahead` a batch may have the rows of several polls."""
    fetches_ahead: bool
    """True if it may be polled again before the rows of the previous poll are in the sink."""

    @property
    def dead_letters(self) -> int:
        """Rows put aside since the feed was made."""

    def poll(self, position: Position | None, write: Write) -> Position | None:
        """Write the rows after `position` (None: from the start), and return the position after them; the same position if there are no rows."""

    def release(self, position: Position | None) -> None:
        """Release the rows up to `position`, which are in the sink. Not called if the feed fetches ahead."""

    def freeze(self) -> None:
        """Ignore rows that appear from now on."""

    def close(self) -> None:
        """Close all connections."""
