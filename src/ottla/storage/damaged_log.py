"""What is damaged in a log: where it is, which offsets it takes, and where records go on behind it.

Damage is out of service and stays as it was found: nothing here changes a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ottla.errors import CorruptRecordError


@dataclass(frozen=True)
class Damage:
    """A stretch of a segment's file that cannot be believed."""

    file: Path
    """The segment's `.log`."""
    position: int
    """Where in the file the stretch begins."""
    size_bytes: int
    """How long it is; 0 where the file ends before it should."""
    offset: int
    """The first offset that is concerned."""
    next_offset: int
    """Where records go on: all offsets from the first up to this one are concerned."""
    reason: str

    def __str__(self) -> str:
        partition = self.file.parent.name
        return (
            f"{partition}, offset {self.offset}: {self.reason} ({self.file}, position {self.position}, "
            f"{self.size_bytes} bytes); seek to offset {self.next_offset} to go on without it"
        )


class DamagedLogError(CorruptRecordError):
    """The records that were asked for are damaged; `damage` says which they are."""

    def __init__(self, damage: Damage) -> None:
        super().__init__(str(damage))
        self.damage = damage

    def __reduce__(self) -> tuple[type[DamagedLogError], tuple[Damage]]:
        return DamagedLogError, (self.damage,)
