"""What lies where a file belongs, in a word for a person."""

from __future__ import annotations

import os
import stat
from pathlib import Path

KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def kind_of(path: Path) -> str:
    """What that is which should be a file."""
    try:
        return KINDS.get(stat.S_IFMT(os.stat(path).st_mode), "no file")
    except OSError:
        return "a link that leads nowhere" if path.is_symlink() else "no file"
