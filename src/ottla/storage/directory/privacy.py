"""The permissions of a data directory: it holds records, and keys that are derived from users' passwords."""

from __future__ import annotations

import stat
from pathlib import Path

PRIVATE = 0o700
"""The mode of a directory that is created here. An existing directory keeps its mode."""


def make_private(path: Path) -> None:
    """Create a directory that only its owner may enter, unless it exists. Missing parents are created with the umask."""
    path.mkdir(mode=PRIVATE, parents=True, exist_ok=True)


def is_open_to_others(path: Path) -> bool:
    """Return True if every user of this machine may enter the directory, and so read files in it that have the usual modes."""
    absolute = path.resolve()
    return all(stat.S_IMODE(each.stat().st_mode) & stat.S_IXOTH for each in (absolute, *absolute.parents))
