"""A disk that fails on demand, under the system calls that storage makes.

    with FaultyDisk(folder, random.Random(1)) as disk:
        disk.failing = {"pwrite", "fsync"}       # each such call may now fail, or do half
        disk.lose_power()                        # what was not forced to the disk is gone, or half of it

Only files below the folder are concerned.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from unittest import mock

CALLS = ("pwrite", "fsync", "ftruncate", "open", "replace", "rename", "unlink", "mkdir")
ERRORS = (errno.ENOSPC, errno.EIO, errno.EROFS, errno.EACCES)
LIKELY = 0.4


class FaultyDisk:
    """Replace the functions of `os` in `CALLS` with functions that can fail."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder = str(folder)
        self.chance = chance
        self.failing: set[str] = set()
        """The calls that may fail now. If empty, the disk is sound."""
        self.failed = 0
        self.durable: dict[int, bytes] = {}
        """The flushed bytes of each file, by inode."""
        self.entries: dict[str, set[str]] = {}
        """The flushed names of each folder."""
        self.real: dict[str, Callable[..., Any]] = {name: getattr(os, name) for name in CALLS}
        self._patches = [mock.patch.object(os, name, self._stand_in(name)) for name in CALLS]

    def __enter__(self) -> Self:
        for patch in self._patches:
            patch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for patch in self._patches:
            patch.stop()

    def _stand_in(self, name: str) -> Callable[..., Any]:
        specials: dict[str, Callable[..., Any]] = {"pwrite": self._pwrite, "fsync": self._fsync}
        special = specials.get(name)

        def stand_in(where: Any, *arguments: Any, **more: Any) -> Any:
            if self.path_of(where) is None:
                return self.real[name](where, *arguments, **more)
            if special is not None:
                return special(where, *arguments)
            if not (name == "open" and arguments and not arguments[0] & (os.O_CREAT | os.O_RDWR)):
                self._maybe_fail(name)
            return self.real[name](where, *arguments, **more)

        return stand_in

    def path_of(self, where: Any) -> str | None:
        """The path that a descriptor or an argument is about, None outside of the folder."""
        path = os.readlink(f"/proc/self/fd/{where}") if isinstance(where, int) else os.fspath(where)
        return path if path.startswith(self.folder) else None

    def _maybe_fail(self, name: str) -> None:
        if name in self.failing and self.chance.random() < LIKELY:
            self.failed += 1
            number = self.chance.choice(ERRORS)
            raise OSError(number, os.strerror(number))

    def _pwrite(self, fd: int, data: Any, position: int) -> int:
        # Half of it is written; the other half fails with the next call, or not.
        if "pwrite" in self.failing and len(data) > 1 and self.chance.random() < LIKELY:
            written: int = self.real["pwrite"](fd, memoryview(data)[: self.chance.randrange(1, len(data))], position)
            return written
        self._maybe_fail("pwrite")
        whole: int = self.real["pwrite"](fd, data, position)
        return whole

    def _fsync(self, fd: int) -> None:
        self._maybe_fail("fsync")
        path = self.path_of(fd)
        assert path is not None
        if os.path.isdir(path):
            self.entries[path] = set(os.listdir(path))
        else:
            self.durable[os.fstat(fd).st_ino] = Path(path).read_bytes()

    def lose_power(self) -> None:
        """Leave of each file what was forced to the disk, and of the rest a part, or zeros, or all."""
        self.failing = set()
        for folder, _, names in os.walk(self.folder):
            for name in names:
                self._lose(Path(folder, name))

    def _lose(self, path: Path) -> None:
        content, kept = path.read_bytes(), self.durable.get(path.stat().st_ino, b"")
        if path.name not in self.entries.get(str(path.parent), ()) and not kept and self.chance.random() < 0.5:
            path.unlink()
        elif content[: len(kept)] == kept:
            rest = content[len(kept) :]
            part = self.chance.choice((rest, b"", rest[: len(rest) // 2], rest[: len(rest) // 2] + bytes(len(rest))))
            path.write_bytes(kept + part[: len(rest)])
        else:
            path.write_bytes(self.chance.choice((kept, content)))
