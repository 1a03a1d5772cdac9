"""The manifest of a backup: its contents with the checksum of each file, and a checksum of itself.

The file is `{"sha256": H, "manifest": M}`. H is the SHA-256 of the bytes of M, so that a changed byte anywhere in the folder is
found: in a segment by its entry in M, in M by H. Reading is strict: unknown fields and other types are errors.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from ottla.backup.selection import Selection
from ottla.errors import OttlaError
from ottla.model import TopicPartition

FORMAT = "ottla-backup"
VERSION = 1
SegmentFormat = Literal["log", "parquet"]
GroupType = Literal["classic", "consumer", "share", "streams"]


SEGMENT_REMEDY = "restore this file from a copy of the backup, or make a new backup into another folder"


class BackupError(OttlaError):
    """A backup is damaged or incomplete, or does not fit the cluster."""


class Segment(Struct, frozen=True, forbid_unknown_fields=True):
    """A file with the records of one partition in a range of offsets."""

    file: str
    """The path within the folder."""
    first_offset: int
    """The offset of the first record."""
    next_offset: int
    """The offset after the range; up to it, every committed record of the partition is in this or an earlier segment."""
    records: int
    size_bytes: int
    sha256: str


class PartitionBackup(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A partition: the range of offsets that was read, and its segments in order."""

    start: int
    """The start offset of the log at the first backup."""
    end: int
    """The offset up to which every committed record was read; the next run continues there."""
    segments: list[Segment] = field(default_factory=list)
    is_skipped: bool = False
    """True if the last run skipped the partition, because it had no leader: later records are missing."""

    @property
    def records(self) -> int:
        """The number of records in all segments."""
        return sum(segment.records for segment in self.segments)


class TopicBackup(Struct, forbid_unknown_fields=True):
    """A topic with its explicitly set configs; the index of a partition in the list is its number."""

    topic_id: str
    replication_factor: int
    configs: dict[str, str]
    partitions: list[PartitionBackup]
    read_ms: int
    """The time at which the last complete run read the end offsets."""


class GroupOffset(Struct, frozen=True, forbid_unknown_fields=True):
    """A committed offset, or the start offset of a share group."""

    topic: str
    partition: int
    offset: int
    metadata: str = ""


class GroupBackup(Struct, frozen=True, forbid_unknown_fields=True):
    """A group: its type, offsets, and configs that were set explicitly."""

    type: GroupType
    offsets: list[GroupOffset]
    configs: dict[str, str]


class AccessRule(Struct, frozen=True, forbid_unknown_fields=True):
    """An access rule with the fields of `AclBinding`."""

    resource_type: str
    name: str
    principal: str
    operation: str
    permission: str
    pattern_type: str
    host: str


class Quota(Struct, frozen=True, forbid_unknown_fields=True):
    """The quotas of a client entity."""

    user: str | None
    client_id: str | None
    ip: str | None
    values: dict[str, float]


class Run(Struct, frozen=True, forbid_unknown_fields=True):
    """A completed run."""

    started_ms: int
    ended_ms: int
    records: int
    size_bytes: int


class Manifest(Struct, forbid_unknown_fields=True):
    """The contents of a backup."""

    format: str
    version: int
    backup_id: str
    cluster_id: str | None
    segment_format: SegmentFormat
    selection: Selection
    runs: list[Run] = field(default_factory=list)
    topics: dict[str, TopicBackup] = field(default_factory=dict)
    groups: dict[str, GroupBackup] = field(default_factory=dict)
    access_rules: list[AccessRule] | None = None
    """None if they were not read."""
    quotas: list[Quota] | None = None
    users: dict[str, list[str]] | None = None
    """The SCRAM mechanisms of each user. No API returns passwords, so that they have to be set again."""

    @property
    def skipped(self) -> tuple[str, ...]:
        """The partitions that the last run skipped, because they had no leader."""
        return tuple(
            str(TopicPartition(name, number))
            for name, topic in sorted(self.topics.items())
            for number, partition in enumerate(topic.partitions)
            if partition.is_skipped
        )

    @property
    def segments(self) -> list[Segment]:
        """All segments."""
        return [each for topic in self.topics.values() for part in topic.partitions for each in part.segments]

    @property
    def records(self) -> int:
        """The number of records in all topics."""
        return sum(segment.records for segment in self.segments)

    @property
    def size_bytes(self) -> int:
        """The size of all segments."""
        return sum(segment.size_bytes for segment in self.segments)


class Envelope(Struct, frozen=True, forbid_unknown_fields=True):
    """The manifest's file."""

    sha256: str
    manifest: msgspec.Raw


def encode_manifest(manifest: Manifest) -> bytes:
    """Return the file of a manifest, with its checksum."""
    return wrap(msgspec.json.format(msgspec.json.encode(manifest), indent=1))


def wrap(body: bytes) -> bytes:
    return b'{"sha256": "%s", "manifest": %s}\n' % (sha256(body).hexdigest().encode(), body)


def decode_manifest(data: bytes, name: str) -> Manifest:
    """Return the manifest of a file. Raises BackupError if a byte of it was changed; `name` is in the text."""
    try:
        envelope = msgspec.json.decode(data, type=Envelope)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BackupError(f"{name} is damaged: {error}; restore this file from a copy of the backup") from None
    body = bytes(envelope.manifest)
    if wrap(body) != data:
        raise BackupError(
            f"{name} is damaged: its SHA-256 is not {envelope.sha256[:64]!r}; restore this file from a copy of the backup"
        )
    head: dict[str, Any] = msgspec.json.decode(body)
    if head.get("format") != FORMAT or head.get("version") != VERSION:
        raise BackupError(
            f"{name} has format {head.get('format')!r} version {head.get('version')!r}: this version of Ottla reads "
            f"{FORMAT!r} version {VERSION}"
        )
    try:
        manifest = msgspec.json.decode(body, type=Manifest)
    except msgspec.ValidationError as error:
        raise BackupError(f"{name} is not a valid manifest: {error}") from None
    check_manifest(manifest, name)
    return manifest


def check_manifest(manifest: Manifest, name: str) -> None:
    """Raise BackupError if ranges overlap or a path leads out of the folder."""
    for topic, contents in manifest.topics.items():
        for number, partition in enumerate(contents.partitions):
            position = 0
            for segment in partition.segments:
                parts = segment.file.split("/")
                if ".." in parts or segment.file.startswith("/") or "\\" in segment.file:
                    raise BackupError(f"{name}: invalid path {segment.file!r} of a segment: it leads out of the folder")
                if not position <= segment.first_offset < segment.next_offset <= partition.end or segment.records < 1:
                    raise BackupError(
                        f"{name}: invalid offsets {segment.first_offset} to {segment.next_offset} of {segment.file!r} in "
                        f"{topic}-{number}, which ends at {partition.end}"
                    )
                position = segment.next_offset


def damaged(path: Path, reason: object) -> BackupError:
    """Return the error for a segment file that cannot be read."""
    return BackupError(f"{path} is damaged: {reason}; {SEGMENT_REMEDY}")
