"""The directory of one partition: its segment files, its topic id, its name, and its deletion."""

from __future__ import annotations

import errno
import os
import re
import uuid
from bisect import bisect_right
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ottla.kafka_id import id_of, text_of
from ottla.model import TopicPartition
from ottla.storage.files.durable import remove_tree, replace_file, sync_path
from ottla.storage.files.regular_file import read_whole
from ottla.storage.segments import swap

METADATA_FILE = "partition.metadata"
LOG_NAME = re.compile(r"0[0-8]\d{18}\.log")
"""The name of a log file: 20 digits that are a valid offset."""
FILE_NAME = re.compile(
    r"0[0-8]\d{18}\.((log|index|timeindex|txnindex)(\.(cleaned|swap|deleted|tmp))?|snapshot)|leader-epoch-checkpoint"
)
"""The files of a partition's log, including temporary files that a crash left; not `partition.metadata`."""
REPLACEABLE = (".index", ".timeindex")
"""The files that a log can do without: a start rebuilds them from the batches."""
PARTITION_NAME = re.compile(r"(.+)-(\d+)")
DELETED_NAME = re.compile(r".+-\d+\.[0-9a-f]{32}-delete")
LEFTOVERS = (".deleted", ".tmp")
INDEXES = (".index", ".timeindex", ".txnindex")
SHARED_CHARACTERS = 8
"""Two ids with at least this number of equal characters, of 22, are the same id, of which one copy is damaged."""
NAME_BYTES = 255
"""Longest file name that file systems take."""


def find_segments(directory: Path) -> dict[int, os.stat_result]:
    """Return the file status of the segments by base offset, in order.

    First complete or undo a replacement by compaction that a crash interrupted, and delete temporary files and indexes without a log file.
    """
    names = {entry.name: entry for entry in os.scandir(directory)}
    ensure_files(names.values())
    if swap.recover_swap(directory, names):
        names = {entry.name: entry for entry in os.scandir(directory)}
    for name in names:
        orphan = name.endswith(INDEXES) and name.rpartition(".")[0] + ".log" not in names
        if orphan or name.endswith(LEFTOVERS):
            (directory / name).unlink(missing_ok=True)
    logs = sorted(name for name in names if LOG_NAME.fullmatch(name))
    return {int(name[:20]): names[name].stat() for name in logs}


def ensure_files(entries: Iterable[os.DirEntry[str]]) -> None:
    """Raise IsADirectoryError if a file that the log needs is a folder or a broken link. Many of these files are opened only much later."""
    for entry in entries:
        if FILE_NAME.fullmatch(entry.name) and not entry.name.endswith(REPLACEABLE) and not is_file(entry):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), entry.path)


def is_file(entry: os.DirEntry[str]) -> bool:
    """Return `DirEntry.is_file`, which needs no system call; for a link the target is read, because `DirEntry` fails on a link to itself."""
    return os.path.isfile(entry.path) if entry.is_symlink() else entry.is_file()


def find_misplaced_files(directory: Path) -> list[Path]:
    """Return the paths that have the name of a log's file and are not files: directories, and broken links."""
    return sorted(path for path in directory.iterdir() if FILE_NAME.fullmatch(path.name) and not path.is_file())


def has_segments(directory: Path) -> bool:
    """Return True if the directory has any segment, also one that compaction was about to install."""
    return any(map(LOG_NAME.match, os.listdir(directory)))


def state_files_in(folder: Path) -> list[Path]:
    """Return the segments in a folder; none if there is no such folder."""
    return [path for path in folder.iterdir() if LOG_NAME.fullmatch(path.name)] if folder.is_dir() else []


def has_state(folder: Path) -> bool:
    """Return True if the metadata log has records, or an empty segment that starts at a snapshot, as a crash may leave it."""
    return any(
        path.stat().st_size or (int(path.stem) and any(folder.glob(f"{path.stem}-*.checkpoint")))
        for path in state_files_in(folder)
    )


def stored_bytes(directory: Path) -> int:
    """Return the size in bytes of a partition's log; 0 without a directory. A segment that is deleted meanwhile counts as empty."""
    total = 0
    with suppress(FileNotFoundError):
        for name in filter(LOG_NAME.fullmatch, os.listdir(directory)):
            with suppress(FileNotFoundError):
                total += os.stat(directory / name).st_size
    return total


def size_from(directory: Path, offset: int) -> int:
    """Return the size of the segment with an offset and of those after it; 0 if there is none."""
    names = sorted(name for name in os.listdir(directory) if LOG_NAME.fullmatch(name))
    first = max(bisect_right(names, f"{offset:020d}.log") - 1, 0)
    return sum(os.stat(f"{directory}/{name}").st_size for name in names[first:])


def partition_of(name: str) -> TopicPartition | None:
    """Return the partition of a directory with that name."""
    match = PARTITION_NAME.fullmatch(name)
    return TopicPartition(match[1], int(match[2])) if match else None


def read_topic_id(directory: Path) -> uuid.UUID | None:
    """Read the topic's id from `partition.metadata`; ValueError if the file is damaged."""
    path = directory / METADATA_FILE
    try:
        text = read_whole(path).decode("utf-8", "replace").strip("\0\n")
    except FileNotFoundError:
        return None
    if not text:
        return None  # After a power failure the file may be empty, because it is not forced to the disk.
    fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    try:
        if fields["version"] != "0":
            raise ValueError(f"version {fields['version']}")
        return id_of(fields["topic_id"])
    except (KeyError, ValueError) as error:
        fault = f"it has no {error.args[0]}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{path} is damaged ({fault}): it must hold 'version: 0' and 'topic_id: …'") from None


def write_topic_id(directory: Path, topic_id: uuid.UUID) -> None:
    """Write the topic's id. It is not forced to the disk: a power failure may lose it until the log is flushed."""
    replace_file(directory / METADATA_FILE, f"version: 0\ntopic_id: {text_of(topic_id)}\n", sync=False)


def is_of(folder: Path, topic_id: uuid.UUID) -> bool:
    """Return True if a directory belongs to a topic, or has no topic id."""
    try:
        return read_topic_id(folder) in (None, topic_id)
    except (OSError, ValueError):
        return False


def are_same_id(one: uuid.UUID, other: uuid.UUID) -> bool:
    """Return True if two ids are equal except for damage: ids are random, and two of them share that many characters once in a billion times."""
    return sum(a == b for a, b in zip(text_of(one), text_of(other), strict=True)) >= SHARED_CHARACTERS


def set_aside(folder: Path) -> Path:
    """Rename a partition's folder to `…-stray`, which is no partition, so that an operator can find it. Return the new path."""
    aside = folder.with_name(f"{folder.name}.{uuid.uuid4().hex}-stray")
    folder.rename(aside)
    return aside


def rename_deleted(folder: Path, unique: uuid.UUID | None = None) -> Path:
    """Rename a folder so that the next start deletes it, and return its new path: a crash never leaves half a partition."""
    suffix = f".{(unique or uuid.uuid4()).hex}-delete"
    topic, _, number = folder.name.rpartition("-")
    topic = topic[: NAME_BYTES - len(suffix) - len(number) - 1]
    doomed = folder.with_name(f"{topic}-{number}{suffix}")
    folder.rename(doomed)
    return doomed


def remove_folder(directory: Path, unique: uuid.UUID) -> None:
    """Delete a folder. It is renamed first, so that a crash leaves the whole folder, or one that the next start deletes."""
    doomed = rename_deleted(directory, unique)
    sync_path(directory.parent)
    remove_tree(doomed)
