"""The folder of a pipeline below the checkpoints: Spark's checkpoints, what they belong to, how it is, and who runs it.

<checkpoints>/<name>/checkpoint       Spark's, of the pipeline
<checkpoints>/<name>/dead-letters     Spark's, of its dead letters
<checkpoints>/<name>/pipeline.json    the fingerprint
<checkpoints>/<name>/status.json      how it was when last heard of
<checkpoints>/<name>/start.json       where its source begins, where that was said by a reset
<checkpoints>/<name>/target.json      that it is to be paused or stopped, also by the next manager
<checkpoints>/<name>/control.json     how to reach the manager that runs it
<checkpoints>/<name>/lock             held while it is run
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from ottla.errors import ConfigError
from ottla.pipelines.manager.fingerprint import Fingerprint, change
from ottla.pipelines.surroundings import CHECKPOINT

SET_ASIDE = (CHECKPOINT, "dead-letters", "spool", "inputs")
"""What a reset begins anew."""
LOOKS_SECONDS = 10.0
"""More than it takes to look whether a lock is taken, however busy the machine is."""
LEAVES_SECONDS = 0.2
"""What is granted to a process that was killed, and to what it had started, to be gone."""
PAUSE_SECONDS = 0.02


class Home:
    """Where a pipeline keeps how far it is."""

    def __init__(self, checkpoints: Path, name: str) -> None:
        self.name = name
        self.folder = checkpoints / name
        self._lock: IO[str] | None = None

    @property
    def checkpoint(self) -> Path:
        return self.folder / CHECKPOINT

    @property
    def dead_letters(self) -> Path:
        return self.folder / "dead-letters"

    @property
    def is_new(self) -> bool:
        """Whether nothing was begun here; offsets are what Spark writes first."""
        return not (self.checkpoint / "offsets").exists()

    @property
    def query_ids(self) -> list[str]:
        """What Spark calls the query, and those before a reset."""
        found = [read_json(folder / "metadata") for folder in sorted(self.folder.glob("checkpoint*"))]
        return [str(one["id"]) for one in found if one is not None and "id" in one]

    def take(self, remedy: str = "stop that one first, or choose other checkpoints") -> None:
        """Hold it until this process ends or gives it back; ConfigError, with the remedy, where somebody else does."""
        with self._writing():
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = (self.folder / "lock").open("a+", encoding="utf-8")
        if not locked(lock):
            lock.seek(0)
            holder = lock.read().strip() or "another process"
            lock.close()
            raise ConfigError(f"pipeline {self.name!r} is being run by {holder}; {remedy}")
        self._lock = lock
        with self._writing():
            os.truncate(lock.fileno(), 0)
            os.write(lock.fileno(), f"process {os.getpid()}".encode())

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """What the disk will not do is a sentence."""
        try:
            yield
        except OSError as error:
            where = error.filename or self.folder
            raise ConfigError(f"pipeline {self.name!r}: {where}: {error.strerror}; choose other checkpoints") from None

    def give_back(self) -> None:
        """Let others run it."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def is_there(self) -> bool:
        """Whether the folder is the one that is held, and not gone, or another in its place."""
        try:
            there = (self.folder / "lock").stat()
        except OSError:
            return False
        return self._lock is not None and os.path.samestat(there, os.fstat(self._lock.fileno()))

    def is_taken(self) -> bool:
        """Whether a process runs it now."""
        try:
            with (self.folder / "lock").open(encoding="utf-8") as lock:
                return not flocked(lock, fcntl.LOCK_SH)
        except FileNotFoundError:
            return False
        except OSError:
            return True

    def refusal(self, now: Fingerprint) -> str | None:
        """Why a pipeline that is so may not go on here, and the ways on; None where it may."""
        known = read_json(self.folder / "pipeline.json")
        if self.is_new or known is None:
            return None
        what = change(Fingerprint.from_json(known), now)
        return None if what is None else self.cannot_go_on(what)

    def cannot_go_on(self, what: str) -> str:
        """That `what` was changed and does not fit what is here, and the ways on."""
        return (
            f"pipeline {self.name!r} was changed so that it cannot go on where it was: {what}; take the change back, or "
            f"begin anew under another name (what was begun stays in {self.folder})"
        )

    def remember(self, now: Fingerprint) -> None:
        """Write down what the checkpoint belongs to, before the first batch."""
        with self._writing():
            write_json(self.folder / "pipeline.json", now.to_json())

    def start(self) -> str | None:
        """The offsets, as JSON, at which a new checkpoint begins, where a reset said so."""
        known = read_json(self.folder / "start.json")
        return json.dumps(known) if known else None

    def reset(self, start: Mapping[str, Any] | None) -> list[Path]:
        """Put the checkpoints aside, so that the next run begins anew, at these offsets if there are any; where they are now."""
        number = 1 + max(
            (int(one.suffix[1:]) for one in self.folder.glob("checkpoint.*") if one.suffix[1:].isdigit()), default=0
        )
        aside = [(self.folder / name, self.folder / f"{name}.{number}") for name in SET_ASIDE]
        # Should this be cut off, a checkpoint that is still there wins over where a new one would begin.
        write_json(self.folder / "start.json", start or {})
        moved = [(old, new) for old, new in reversed(aside) if old.exists()]
        for old, new in moved:
            old.rename(new)
        return [new for _, new in moved]

    @property
    def target(self) -> str | None:
        """`paused` or `stopped`, where somebody wants it so."""
        known = read_json(self.folder / "target.json")
        return str(known["state"]) if known and known.get("state") in ("paused", "stopped") else None

    def aim(self, target: str | None) -> None:
        """Keep what it is to be, for the next manager as well."""
        if target is not None:
            write_json(self.folder / "target.json", {"state": target})
        else:
            (self.folder / "target.json").unlink(missing_ok=True)

    def tell_status(self, status: Mapping[str, Any]) -> None:
        """For those who ask later; a full disk, or a folder that is gone, is told by who runs it."""
        with suppress(OSError):
            write_json(self.folder / "status.json", status)

    def status(self) -> dict[str, Any] | None:
        """How it was when last heard of."""
        return read_json(self.folder / "status.json")


def locked(file: IO[str]) -> bool:
    """Whether it could be locked, and is now; who only looks whether it is taken holds it for a moment, which is waited for."""
    started = time.monotonic()
    while not flocked(file, fcntl.LOCK_EX):
        patience = LOOKS_SECONDS if flocked(file, fcntl.LOCK_SH) else LEAVES_SECONDS
        fcntl.flock(file, fcntl.LOCK_UN)
        if time.monotonic() - started > patience:
            return False
        time.sleep(PAUSE_SECONDS)
    return True


def flocked(file: IO[str], kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def read_json(file: Path) -> dict[str, Any] | None:
    """What is in a file of ours; None where there is none, or one that was cut off."""
    try:
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found


def write_json(file: Path, value: Mapping[str, Any]) -> None:
    """All of it or nothing: the file is there whole whenever somebody reads it."""
    beside = file.with_suffix(".new")
    beside.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
    beside.replace(file)
