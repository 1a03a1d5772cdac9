"""Snapshots of a state beside its log, as those of the cluster's metadata: whether each can be read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ottla.errors import CorruptRecordError
from ottla.storage.files.whole_file import read_whole
from ottla.storage.inspection.fault import Fault
from ottla.storage.state_log.snapshot import state_in

REMEDY = "the one before it is read in its place, if there is one, and more of the log"


def snapshot_faults(folder: Path) -> Iterator[Fault]:
    """Those that are not whole; one that is being written, under another name, is left alone."""
    for path in sorted(folder.glob("*.checkpoint")):
        try:
            state_in(read_whole(path), path.name)
        except FileNotFoundError:
            pass  # A node has deleted it meanwhile.
        except CorruptRecordError as error:
            yield Fault(path, f"{error}; {REMEDY}")
