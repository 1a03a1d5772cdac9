"""What lies where a file belongs, in a word for a person."""

from __future__ import annotations

from pathlib import Path


def kind_of(path: Path) -> str:
    """What that is which should be a file."""
    return "a folder" if path.is_dir() else "a link that leads nowhere" if path.is_symlink() else "no file"
