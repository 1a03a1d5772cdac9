"""Control records of the metadata log: leader changes, voters, kraft.version, and the first and last record of a snapshot.

They are stored in control batches. The key of a record contains its kind; the value starts with the version of the encoding.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

from ottla.coordination.quorum.voters_record import VotersRecord
from ottla.errors import CorruptRecordError, ProtocolError
from ottla.protocol.codec import Reader, Writer
from ottla.protocol.plan import plan_of
from ottla.protocol.schema import ZERO_UUID, Int16, Int32, Int64, Message, Uuid, message, since, struct

KEY = Struct(">hh")
"""The layout of a key: the version of the key, then the kind of the record."""


@struct
class Voter:
    voter_id: Int32 = 0
    voter_directory_id: Uuid = since(1, default=ZERO_UUID)


@message(key=2, versions="0-1", flexible="0+")
class LeaderChangeMessage(Message):
    """The first record of an epoch, appended by the leader of the epoch when it is elected."""

    version: Int16 = 0
    leader_id: Int32 = 0
    voters: Sequence[Voter] = ()
    granting_voters: Sequence[Voter] = ()


@message(key=3, versions="0", flexible="0+")
class SnapshotHeaderRecord(Message):
    version: Int16 = 0
    last_contained_log_timestamp: Int64 = 0


@message(key=4, versions="0", flexible="0+")
class SnapshotFooterRecord(Message):
    version: Int16 = 0


@message(key=5, versions="0", flexible="0+")
class KRaftVersionRecord(Message):
    """The level of the feature kraft.version.

    At level 0 the settings of every node list the voters. From level 1 on a VotersRecord in the log lists them.
    """

    version: Int16 = 0
    k_raft_version: Int16 = 0


ControlRecord = LeaderChangeMessage | SnapshotHeaderRecord | SnapshotFooterRecord | KRaftVersionRecord | VotersRecord
KINDS: dict[int, type[Message]] = {
    cls.KEY: cls
    for cls in (LeaderChangeMessage, SnapshotHeaderRecord, SnapshotFooterRecord, KRaftVersionRecord, VotersRecord)
}


def encode_control(record: ControlRecord) -> tuple[bytes, bytes]:
    """Return the key and the value of the record."""
    plan = plan_of(type(record), record.version)
    return KEY.pack(0, record.KEY), b"".join(map(bytes, Writer().write(plan, record)))  # type: ignore[arg-type]


def decode_control(kind: int, value: bytes) -> Message | None:
    """Decode a control record; return None for a kind that the quorum does not use.

    Raise CorruptRecordError if the value is incomplete or its version is unknown.
    """
    cls = KINDS.get(kind)
    if cls is None:
        return None
    version = int.from_bytes(value[:2], "big", signed=True)
    if len(value) < 2 or version not in cls.VERSIONS:
        raise CorruptRecordError(f"a {cls.__name__} of version {version} is not one of {cls.VERSIONS}: {value[:20]!r}")
    reader = Reader(value)
    try:
        found: Message = reader.read(plan_of(cls, version))
        reader.finish()
    except ProtocolError as error:
        raise CorruptRecordError(f"a {cls.__name__} cannot be read: {error}") from error
    return found
