"""The results of an inspection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict


class FileFault(Struct, frozen=True):
    """A damaged or inconsistent place in a file."""

    file: Path
    reason: str
    position: int | None = None
    """The position in the file where it starts."""
    offset: int | None = None
    """The offset of the first affected record."""
    bytes: int | None = None
    """How many bytes of the file are concerned."""

    def __str__(self) -> str:
        places = [
            f"position {self.position}" if self.position is not None else "",
            f"offset {self.offset}" if self.offset is not None else "",
            f"{self.bytes} bytes" if self.bytes is not None else "",
        ]
        place = ", ".join(filter(None, places))
        return f"{self.file}: {place}: {self.reason}" if place else f"{self.file}: {self.reason}"

    def fields(self) -> dict[str, Any]:
        return {**asdict(self), "file": str(self.file)}


class FileNote(Struct, frozen=True):
    """A notable fact that is no damage."""

    file: Path
    text: str

    def __str__(self) -> str:
        return f"{self.file}: {self.text}"
