"""Copies of a folder at every moment at which a kill can happen."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

CHANGES = ("open", "replace", "rename", "unlink", "truncate", "ftruncate")
Inodes = dict[int, int]
"""The inodes of copied files, by the inodes of their copies."""


@contextmanager
def every_moment(
    folder: Path, kept: Path, *, also: tuple[str, ...] = (), inodes: Inodes | None = None
) -> Iterator[None]:
    """Keeps the folder as a kill would leave it, before each call that changes what is in it."""
    busy, count = False, 0

    def before(name: str, real: Any) -> Any:
        def stand_in(where: Any, *arguments: Any, **more: Any) -> Any:
            nonlocal busy, count
            changes = name != "open" or (bool(arguments) and arguments[0] & os.O_CREAT)
            if changes and not busy and folder.exists():
                busy, count = True, count + 1
                shutil.copytree(folder, kept / f"{count:05d}")
                if inodes is not None:
                    inodes.update(inodes_of(folder, kept / f"{count:05d}"))
                busy = False
            return real(where, *arguments, **more)

        return stand_in

    with ExitStack() as stack:
        for name in (*CHANGES, *also):
            stack.enter_context(mock.patch.object(os, name, before(name, getattr(os, name))))
        stack.enter_context(mock.patch.object(os, "fsync"))  # which no kill needs
        yield


def inodes_of(folder: Path, copy: Path) -> Inodes:
    return {
        (copy / path.relative_to(folder)).stat().st_ino: path.stat().st_ino
        for path in folder.rglob("*")
        if path.is_file()
    }
