"""Small files that are whole or not there, and directories that remember their entries after a power cut."""

from __future__ import annotations

import os
from pathlib import Path


def replace_file(path: Path, text: str, *, sync: bool = True) -> None:
    """Put `text` in place of the file at once: a crash leaves the old text or the new, never a part."""
    draft = path.with_name(path.name + ".tmp")
    with open(draft, "w", encoding="utf-8") as file:
        file.write(text)
        if sync:
            file.flush()
            os.fsync(file.fileno())
    os.replace(draft, path)
    if sync:
        sync_path(path.parent)


def sync_path(path: Path) -> None:
    """Force a file's bytes, or a directory's entries, to the disk."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
