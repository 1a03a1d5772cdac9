"""The records of `__share_group_state` in Kafka's schemas: for each share partition a snapshot, and updates since then.

Only the leader of a share partition changes its state. The share coordinator writes an update for most changes, and a snapshot with
the next snapshot epoch after a number of updates. A snapshot without a value deletes the state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.coordination.serde import decode_pair, encode_pair, pairs_of
from ottla.protocol.messages.read_share_group_state import StateBatch
from ottla.protocol.schema import ZERO_UUID, Int32, Int64, Message, String, Uuid, message, tagged


@message(key=0, versions="0")
class ShareSnapshotKey(Message):
    group_id: String = ""
    topic_id: Uuid = ZERO_UUID
    partition: Int32 = 0


@message(key=0, versions="0", flexible="0+")
class ShareSnapshotValue(Message):
    """The whole state of a share partition."""

    snapshot_epoch: Int32 = 0
    state_epoch: Int32 = 0
    leader_epoch: Int32 = 0
    start_offset: Int64 = 0
    delivery_complete_count: Int32 = tagged(0, since=0, default=-1)
    """The number of records from the start offset on that are not delivered any more (KIP-1226)."""
    create_timestamp: Int64 = 0
    write_timestamp: Int64 = 0
    state_batches: Sequence[StateBatch] = ()


@message(key=1, versions="0")
class ShareUpdateKey(Message):
    group_id: String = ""
    topic_id: Uuid = ZERO_UUID
    partition: Int32 = 0


@message(key=1, versions="0", flexible="0+")
class ShareUpdateValue(Message):
    """A change of the state since the snapshot with the same epoch."""

    snapshot_epoch: Int32 = 0
    leader_epoch: Int32 = 0
    start_offset: Int64 = 0
    """-1 if it did not change."""
    delivery_complete_count: Int32 = tagged(0, since=0, default=-1)
    """-1 if it did not change."""
    state_batches: Sequence[StateBatch] = ()
    """Only the batches that changed."""


PAIRS = pairs_of((ShareSnapshotKey, ShareSnapshotValue), (ShareUpdateKey, ShareUpdateValue))


class ShareStateRecord(NamedTuple):
    """One record of a share partition's state: a snapshot, its deletion, or an update."""

    key: ShareSnapshotKey | ShareUpdateKey
    value: ShareSnapshotValue | ShareUpdateValue | None


def encode_record(record: ShareStateRecord) -> tuple[bytes, bytes | None]:
    """Return key and value as bytes."""
    return encode_pair(record.key, record.value)


def decode_record(key: bytes | None, value: bytes | None) -> ShareStateRecord | None:
    """Return a record of the log; None if its kind is unknown. Raise CorruptRecordError if it is malformed."""
    found = decode_pair(PAIRS, key, value)
    return None if found is None else ShareStateRecord(*found)  # type: ignore[arg-type]  # the classes are those of PAIRS
