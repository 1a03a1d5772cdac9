"""The folder of one partition: its segment files, its topic id, its name, and how it goes away."""

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
"""Of 20 digits that can be an offset: one that is larger names nothing."""
FILE_NAME = re.compile(
    r"0[0-8]\d{18}\.((log|index|timeindex|txnindex)(\.(cleaned|swap|deleted|tmp))?|snapshot)|leader-epoch-checkpoint"
)
"""What the log of a partition has beside its identity, and what a crash leaves."""
REPLACEABLE = (".index", ".timeindex")
"""What a log does without: it is found in the batches at each start."""
PARTITION_NAME = re.compile(r"(.+)-(\d+)")
DELETED_NAME = re.compile(r".+-\d+\.[0-9a-f]{32}-delete")
LEFTOVERS = (".deleted", ".tmp")
INDEXES = (".index", ".timeindex", ".txnindex")
SHARED_CHARACTERS = 8
"""Of the 22 of an id, each one of 64."""
NAME_BYTES = 255
"""Longest file name that file systems take."""


def find_segments(directory: Path) -> dict[int, os.stat_result]:
    """What the system says of the segments' files by base offset, in order; what a crash left half done is removed."""
    names = {entry.name: entry for entry in os.scandir(directory)}
    ensure_files(names.values())
    if swap.recover(directory, names):
        names = {entry.name: entry for entry in os.scandir(directory)}
    for name in names:
        orphan = name.endswith(INDEXES) and name.rpartition(".")[0] + ".log" not in names
        if orphan or name.endswith(LEFTOVERS):
            (directory / name).unlink(missing_ok=True)
    logs = sorted(name for name in names if LOG_NAME.fullmatch(name))
    return {int(name[:20]): names[name].stat() for name in logs}


def ensure_files(entries: Iterable[os.DirEntry[str]]) -> None:
    """IsADirectoryError where what the log cannot do without is a folder, or a link to no file: much of it is read long after."""
    for entry in entries:
        if FILE_NAME.fullmatch(entry.name) and not entry.name.endswith(REPLACEABLE) and not is_file(entry):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), entry.path)


def is_file(entry: os.DirEntry[str]) -> bool:
    """Asks the system only about links; one that leads to itself is an error to `DirEntry`."""
    return os.path.isfile(entry.path) if entry.is_symlink() else entry.is_file()


def misplaced(directory: Path) -> list[Path]:
    """What has the name of a file of the log and is none: folders, and links that lead nowhere."""
    return sorted(path for path in directory.iterdir() if FILE_NAME.fullmatch(path.name) and not path.is_file())


def has_segments(directory: Path) -> bool:
    """Whether there is any, be it one that compaction was about to put in the place of others."""
    return any(map(LOG_NAME.match, os.listdir(directory)))


def state_files_in(folder: Path) -> list[Path]:
    """The segments in a folder, none where there is no such folder."""
    return [path for path in folder.iterdir() if LOG_NAME.fullmatch(path.name)] if folder.is_dir() else []


def holds_state(folder: Path) -> bool:
    """Whether a state's log has anything: records, or an empty segment behind a snapshot that stands for all before, as a kill may leave it."""
    return any(
        path.stat().st_size or (int(path.stem) and any(folder.glob(f"{path.stem}-*.checkpoint")))
        for path in state_files_in(folder)
    )


def stored_bytes(directory: Path) -> int:
    """Bytes of records in a partition's folder, none where there is no folder yet; a segment that goes meanwhile has none."""
    total = 0
    with suppress(FileNotFoundError):
        for name in filter(LOG_NAME.fullmatch, os.listdir(directory)):
            with suppress(FileNotFoundError):
                total += os.stat(directory / name).st_size
    return total


def bytes_from(directory: Path, offset: int) -> int:
    """The size of the segment that holds an offset and of those behind it, 0 where there is none."""
    names = sorted(name for name in os.listdir(directory) if LOG_NAME.fullmatch(name))
    first = max(bisect_right(names, f"{offset:020d}.log") - 1, 0)
    return sum(os.stat(f"{directory}/{name}").st_size for name in names[first:])


def partition_of(name: str) -> TopicPartition | None:
    """Which partition a folder of that name holds."""
    match = PARTITION_NAME.fullmatch(name)
    return TopicPartition(match[1], int(match[2])) if match else None


def read_topic_id(directory: Path) -> uuid.UUID | None:
    """The topic's id as `partition.metadata` keeps it; ValueError where the file is damaged."""
    path = directory / METADATA_FILE
    try:
        text = read_whole(path).decode("utf-8", "replace").strip("\0\n")
    except FileNotFoundError:
        return None
    if not text:
        return None  # A power cut came before the bytes were on the disk.
    fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    try:
        if fields["version"] != "0":
            raise ValueError(f"version {fields['version']}")
        return id_of(fields["topic_id"])
    except (KeyError, ValueError) as error:
        fault = f"it has no {error.args[0]}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{path} is damaged ({fault}): it must hold 'version: 0' and 'topic_id: …'") from None


def write_topic_id(directory: Path, topic_id: uuid.UUID) -> None:
    """Keep the topic's id; a power cut may lose it until the log is flushed."""
    replace_file(directory / METADATA_FILE, f"version: 0\ntopic_id: {text_of(topic_id)}\n", sync=False)


def is_of(folder: Path, topic_id: uuid.UUID) -> bool:
    """Whether a folder is of a topic, or says nothing."""
    try:
        return read_topic_id(folder) in (None, topic_id)
    except (OSError, ValueError):
        return False


def are_one(one: uuid.UUID, other: uuid.UUID) -> bool:
    """Whether two ids are one but for damage: those of two topics are random, and share so much once in a billion times."""
    return sum(a == b for a, b in zip(text_of(one), text_of(other), strict=True)) >= SHARED_CHARACTERS


def set_aside(folder: Path) -> Path:
    """Give a partition's folder a name that no partition has, by which a person finds it."""
    aside = folder.with_name(f"{folder.name}.{uuid.uuid4().hex}-stray")
    folder.rename(aside)
    return aside


def rename_deleted(folder: Path, unique: uuid.UUID | None = None) -> Path:
    """The folder's new name, by which a start knows that it is to go: a crash never leaves half a partition."""
    suffix = f".{(unique or uuid.uuid4()).hex}-delete"
    topic, _, number = folder.name.rpartition("-")
    topic = topic[: NAME_BYTES - len(suffix) - len(number) - 1]
    doomed = folder.with_name(f"{topic}-{number}{suffix}")
    folder.rename(doomed)
    return doomed


def remove_folder(directory: Path, unique: uuid.UUID) -> None:
    """Rename it first, so that a crash leaves the whole of it or a folder that the next start removes."""
    doomed = rename_deleted(directory, unique)
    sync_path(directory.parent)
    remove_tree(doomed)
