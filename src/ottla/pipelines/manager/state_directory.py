"""The state directory of a pipeline below the checkpoints.

<checkpoints>/<name>/checkpoint       Spark's checkpoint of the pipeline
<checkpoints>/<name>/dead-letters     Spark's checkpoint of its dead letters
<checkpoints>/<name>/pipeline.json    the fingerprint
<checkpoints>/<name>/schemas.json     the schemas of registered values in the last run
<checkpoints>/<name>/status.json      the last reported status
<checkpoints>/<name>/start.json       the start offsets after a reset
<checkpoints>/<name>/target.json      the requested state paused or stopped, which outlives the manager
<checkpoints>/<name>/control.json     the address of the manager that runs it
<checkpoints>/<name>/lock             locked while it is run
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
from ottla.pipelines.manager.fingerprint import Fingerprint, find_change
from ottla.pipelines.pipeline_context import CHECKPOINT

SET_ASIDE = (CHECKPOINT, "dead-letters", "spool", "inputs")
"""The folders that a reset replaces."""
LOOKS_SECONDS = 10.0
"""Longer than another process holds the lock to test it, even on a busy machine."""
LEAVES_SECONDS = 0.2
"""The time for a killed process and its children to end."""
PAUSE_SECONDS = 0.02


class StateDirectory:
    """The state directory of one pipeline."""

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
        """True if no batch was started; Spark writes offsets first."""
        return not (self.checkpoint / "offsets").exists()

    @property
    def query_ids(self) -> list[str]:
        """The ids of the query and of the queries before a reset."""
        found = [read_json(folder / "metadata") for folder in sorted(self.folder.glob("checkpoint*"))]
        return [str(one["id"]) for one in found if one is not None and "id" in one]

    def lock(self, remedy: str = "stop that one first, or choose other checkpoints") -> None:
        """Lock the directory until this process ends or `unlock`; ConfigError, with the remedy, if another process has the lock."""
        with self._converting_errors():
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = (self.folder / "lock").open("a+", encoding="utf-8")
        if not try_lock(lock):
            lock.seek(0)
            holder = lock.read().strip() or "another process"
            lock.close()
            raise ConfigError(f"pipeline {self.name!r} is being run by {holder}; {remedy}")
        self._lock = lock
        with self._converting_errors():
            os.truncate(lock.fileno(), 0)
            os.write(lock.fileno(), f"process {os.getpid()}".encode())

    @contextmanager
    def _converting_errors(self) -> Iterator[None]:
        """Raise errors of the file system as ConfigErrors."""
        try:
            yield
        except OSError as error:
            where = error.filename or self.folder
            raise ConfigError(f"pipeline {self.name!r}: {where}: {error.strerror}; choose other checkpoints") from None

    def unlock(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def is_there(self) -> bool:
        """Return True if the directory is the locked one. It may have been deleted or replaced."""
        try:
            there = (self.folder / "lock").stat()
        except OSError:
            return False
        return self._lock is not None and os.path.samestat(there, os.fstat(self._lock.fileno()))

    def is_locked(self) -> bool:
        """Return True if a process runs the pipeline now."""
        try:
            with (self.folder / "lock").open(encoding="utf-8") as lock:
                return not try_flock(lock, fcntl.LOCK_SH)
        except FileNotFoundError:
            return False
        except OSError:
            return True

    def find_conflict(self, now: Fingerprint) -> str | None:
        """Return the reason why a pipeline with this fingerprint cannot continue here, with remedies; None if it can."""
        known = read_json(self.folder / "pipeline.json")
        if self.is_new or known is None:
            return None
        what = find_change(Fingerprint.from_json(known), now)
        return None if what is None else self.explain_incompatible_change(what)

    def explain_incompatible_change(self, what: str) -> str:
        """Return the text for the incompatible change `what`, with remedies."""
        return (
            f"pipeline {self.name!r} was changed and cannot continue from its checkpoint: {what}; undo the change, or "
            f"start again under another name (the checkpoint remains in {self.folder})"
        )

    def write_fingerprint(self, now: Fingerprint) -> None:
        """Write the fingerprint of the checkpoint, before the first batch."""
        with self._converting_errors():
            write_json(self.folder / "pipeline.json", now.to_json())

    def write_schemas(self, schemas: Mapping[str, Mapping[str, str]]) -> None:
        """Write the schemas with which the pipeline runs, by source and option."""
        file = self.folder / "schemas.json"
        with self._converting_errors():
            if schemas:
                write_json(file, {name: dict(one) for name, one in schemas.items()})
            else:
                file.unlink(missing_ok=True)

    def last_schemas(self, source: str) -> Mapping[str, Any]:
        """Return the schemas of a source in the last run."""
        known = (read_json(self.folder / "schemas.json") or {}).get(source)
        return known if isinstance(known, dict) else {}

    def start(self) -> str | None:
        """Return the start offsets of a new checkpoint as JSON, if a reset set them."""
        known = read_json(self.folder / "start.json")
        return json.dumps(known) if known else None

    def reset(self, start: Mapping[str, Any] | None) -> list[Path]:
        """Move the checkpoints aside, so that the next run starts again, at these offsets if given; return their new paths."""
        number = 1 + max(
            (int(one.suffix[1:]) for one in self.folder.glob("checkpoint.*") if one.suffix[1:].isdigit()), default=0
        )
        aside = [(self.folder / name, self.folder / f"{name}.{number}") for name in SET_ASIDE]
        # If this is interrupted, an existing checkpoint takes precedence over the start offsets.
        write_json(self.folder / "start.json", start or {})
        moved = [(old, new) for old, new in reversed(aside) if old.exists()]
        for old, new in moved:
            old.rename(new)
        return [new for _, new in moved]

    @property
    def target(self) -> str | None:
        """The requested state, `paused` or `stopped`, if any."""
        known = read_json(self.folder / "target.json")
        return str(known["state"]) if known and known.get("state") in ("paused", "stopped") else None

    def set_target(self, target: str | None) -> None:
        """Store the requested state, also for the next manager."""
        if target is not None:
            write_json(self.folder / "target.json", {"state": target})
        else:
            (self.folder / "target.json").unlink(missing_ok=True)

    def write_status(self, status: Mapping[str, Any]) -> None:
        """Write the status for later readers. A full disk or a missing folder is reported by the runner."""
        with suppress(OSError):
            write_json(self.folder / "status.json", status)

    def status(self) -> dict[str, Any] | None:
        """Return the last reported status."""
        return read_json(self.folder / "status.json")


def try_lock(file: IO[str]) -> bool:
    """Lock a file and return True, or return False.

    A process that only tests the lock holds it for a moment, so this waits.
    """
    started = time.monotonic()
    while not try_flock(file, fcntl.LOCK_EX):
        patience = LOOKS_SECONDS if try_flock(file, fcntl.LOCK_SH) else LEAVES_SECONDS
        fcntl.flock(file, fcntl.LOCK_UN)
        if time.monotonic() - started > patience:
            return False
        time.sleep(PAUSE_SECONDS)
    return True


def try_flock(file: IO[str], kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def read_json(file: Path) -> dict[str, Any] | None:
    """Return the content of a file, or None if it does not exist or is incomplete."""
    try:
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found


def write_json(file: Path, value: Mapping[str, Any]) -> None:
    """Write a file atomically: readers see the old or the new content."""
    temporary = file.with_suffix(".new")
    temporary.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
    temporary.replace(file)
