"""The folder of a backup.

```
DIR/manifest.json                                 the last complete run; what a restore reads
DIR/progress.json                                 what an interrupted run has copied; the next run continues from it
DIR/topics/TOPIC/PARTITION/OFFSET-RUN.log         segment files: the offset of the first record, and the time at which the run started, in ms
```

A file is complete when a manifest lists it: files are flushed first, and each manifest replaces the previous one by a rename.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import file_digest
from itertools import count
from pathlib import Path

from ottla.backup.manifest import (
    SEGMENT_REMEDY,
    BackupError,
    Manifest,
    Segment,
    damaged,
    decode_manifest,
    encode_manifest,
)

MANIFEST, PROGRESS, LOCK = "manifest.json", "progress.json", "lock"
TOPICS = "topics"
WITHOUT_MANIFEST = {LOCK, TOPICS, f"{MANIFEST}.new", f"{PROGRESS}.new"}
"""What a run creates before the first manifest."""


class BackupFolder:
    """Reads and writes the files of a backup except the contents of segments."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Create the folder and keep other backups out of it."""
        self.path.mkdir(parents=True, exist_ok=True)
        names = {each.name for each in self.path.iterdir()}
        is_ours = LOCK in names and names <= WITHOUT_MANIFEST  # a run was killed before it saved its progress
        if names and not is_ours and not self.is_backup:
            raise BackupError(f"{self.path} contains other files: give an empty folder, or one with a backup")
        with (self.path / LOCK).open("a") as file:
            try:
                import fcntl
            except ImportError:  # Windows
                yield
                return
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BackupError(f"another backup is running in {self.path}: wait until it has ended") from None
            yield

    @property
    def is_backup(self) -> bool:
        """True if a run has written to the folder."""
        return any((self.path / name).exists() for name in (MANIFEST, PROGRESS))

    def read_manifest(self) -> Manifest:
        """Return the manifest of the last complete run. Raises BackupError if there is none or it is damaged."""
        path = self.path / MANIFEST
        if not path.exists():
            if (self.path / PROGRESS).exists():
                raise BackupError(
                    f"the backup in {self.path} is incomplete: run ottla backup create again to complete it"
                )
            raise BackupError(f"{self.path} has no {MANIFEST}, so it is not the folder of a backup")
        return decode_manifest(path.read_bytes(), str(path))

    def read_progress(self) -> Manifest | None:
        """Return the state of an interrupted run, or None."""
        path = self.path / PROGRESS
        return decode_manifest(path.read_bytes(), str(path)) if path.exists() else None

    def write_progress(self, manifest: Manifest) -> None:
        """Save the state of a run."""
        self._replace(PROGRESS, encode_manifest(manifest))

    def publish(self, manifest: Manifest) -> None:
        """Make a complete run the one that a restore reads, and delete files that no manifest lists."""
        self._replace(MANIFEST, encode_manifest(manifest))
        (self.path / PROGRESS).unlink(missing_ok=True)
        self.delete_unlisted(manifest.segments)

    def delete_unlisted(self, segments: list[Segment]) -> None:
        """Delete segment files that are not among these."""
        listed = {segment.file.casefold() for segment in segments}
        for path in (self.path / TOPICS).glob("*/*/*"):
            if path.relative_to(self.path).as_posix().casefold() not in listed:
                path.unlink()

    def create_segment_path(self, topic: str, partition: int, first_offset: int, run_ms: int, kind: str) -> Path:
        """Return the path of a new segment, and create its directory.

        Two topics whose names differ only in case share a directory on macOS and Windows. Their files have different numbers.
        """
        directory = self.path / TOPICS / topic / str(partition)
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"{first_offset:020d}-{run_ms}.{kind}"
        for number in count(2):
            if not path.exists():
                break
            path = directory / f"{first_offset:020d}-{run_ms}-{number}.{kind}"
        return path

    def describe_segment(self, path: Path, first_offset: int, next_offset: int, records: int) -> Segment:
        """Return the manifest's entry of a finished segment file."""
        name = path.relative_to(self.path).as_posix()
        return Segment(name, first_offset, next_offset, records, path.stat().st_size, digest_of(path))

    def check_segment(self, segment: Segment) -> Path:
        """Return the path of a segment. Raises BackupError if its size or checksum is not the manifest's."""
        path = self.check_size(segment)
        try:
            digest = digest_of(path)
        except OSError as error:
            raise BackupError(f"{path} cannot be read: {error.strerror}; {SEGMENT_REMEDY}") from None
        if digest != segment.sha256:
            raise damaged(path, f"its SHA-256 is {digest}, expected {segment.sha256}")
        return path

    def check_size(self, segment: Segment) -> Path:
        """Return the path of a segment. Raises BackupError if the file is missing or has another size than in the manifest."""
        path = self.path / segment.file
        try:
            size = path.stat().st_size
        except OSError as error:
            raise BackupError(f"{path} cannot be read: {error.strerror}; {SEGMENT_REMEDY}") from None
        if size != segment.size_bytes:
            raise damaged(path, f"it has {size} bytes, expected {segment.size_bytes}")
        return path

    def _replace(self, name: str, data: bytes) -> None:
        new = self.path / f"{name}.new"
        with new.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path / name)


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
