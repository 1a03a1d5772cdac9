"""The end of a log, where batches are appended: what each append reads and changes, so that its fields are C's.

The rest of a log, and all that it does, is in `log.py`.
"""

from __future__ import annotations

from pathlib import Path

from ottla.storage.leader_epochs import LeaderEpochs
from ottla.storage.log_config import LogConfig
from ottla.storage.producers.producer_state import ProducerState
from ottla.storage.segments.segment import Segment

LOOK_MS = 100
"""How long what was seen of the files' place is believed."""


class LogEnd:
    """Offsets, segments and producers of a log."""

    def __init__(self, directory: Path, config: LogConfig, segments: list[Segment], epochs: LeaderEpochs) -> None:
        self.directory = directory
        self.config = config
        """May be replaced at any time; it holds from the next append on."""
        self.segments = segments
        self.epochs = epochs
        self.start_offset = 0
        self.end_offset = 0
        self.replicated = False
        """Whether other brokers have copies: else whatever is appended is committed."""
        self.high_watermark = 0
        """What consumers may see: everything below is committed."""
        self.producers = ProducerState()
        self.size_bytes = 0
        self.closed = False
        self.producers_in_doubt = False
        """Whether an append failed on its way, and the producers could not be found in the log since."""
        self.active_since_ms = 0
        """When the segment was begun that is written to."""
        self.seen_ms = -LOOK_MS
        """When the files were last seen to be where they belong."""
