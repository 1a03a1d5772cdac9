"""Decode records for `ottla log dump`: internal topics by their schemas, other topics as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from ottla.cli.records.record_format import to_readable
from ottla.errors import CorruptRecordError

METADATA, OFFSETS, TRANSACTIONS = "__cluster_metadata", "__consumer_offsets", "__transaction_state"
Entry = dict[str, Any]
CLASSIC_GROUP = 2
KINDS = {
    0: "OffsetCommit",
    1: "OffsetCommit",
    CLASSIC_GROUP: "GroupMetadata",
    3: "ConsumerGroupMetadata",
    4: "ConsumerGroupPartitionMetadata",
    5: "ConsumerGroupMemberMetadata",
    6: "ConsumerGroupTargetAssignmentMetadata",
    7: "ConsumerGroupTargetAssignmentMember",
    8: "ConsumerGroupCurrentMemberAssignment",
    10: "ShareGroupMemberMetadata",
    11: "ShareGroupMetadata",
    12: "ShareGroupTargetAssignmentMetadata",
    13: "ShareGroupTargetAssignmentMember",
    14: "ShareGroupCurrentMemberAssignment",
    15: "ShareGroupStatePartitionMetadata",
    16: "ConsumerGroupRegularExpression",
}
"""Kafka's schema names of the records of `__consumer_offsets`, by the version number at the start of the key."""


def sizes_only(key: bytes | None, value: bytes | None) -> Entry:
    return {}


def renderer(topic: str) -> Callable[[bytes | None, bytes | None], Entry]:
    """Return the function that decodes the records of a topic."""
    return {METADATA: metadata_entry, OFFSETS: offsets_entry, TRANSACTIONS: transaction_entry}.get(topic, data_entry)


def data_entry(key: bytes | None, value: bytes | None) -> Entry:
    return {"key": to_readable(key), "payload": to_readable(value)}


def metadata_entry(key: bytes | None, value: bytes | None) -> Entry:
    """Decode a record of the cluster's metadata; a record of an unknown type is returned undecoded."""
    from ottla.coordination.cluster.records import UnknownRecord, decode_record

    record = decode_or_none(lambda: decode_record(value or b""))
    if record is None or isinstance(record, UnknownRecord):
        kind = value[1] if value and len(value) > 2 else -1
        return {"type": kind, "payload": to_readable(value)}
    return {"type": type(record).__name__, "payload": asdict(record)}


def offsets_entry(key: bytes | None, value: bytes | None) -> Entry:
    """Decode a committed offset or the metadata of a group; any other record is returned undecoded."""
    from ottla.coordination.groups.records import decode_record

    record = decode_or_none(lambda: decode_record(key, value))
    if record is None:
        return data_entry(key, value)
    kind = int.from_bytes((key or b"")[:2], "big")
    payload = None if record.value is None else asdict(record.value)
    if kind == CLASSIC_GROUP and payload is not None and payload["protocol_type"] == "consumer":
        payload["members"] = [member_entry(member) for member in payload["members"]]
    return {"type": KINDS[kind], "key": asdict(record.key), "payload": payload}


def member_entry(member: Struct) -> Entry:
    """Return a member of a classic group with its subscription and assignment decoded."""
    from ottla.coordination.groups.classic.group import assigned_partitions, subscribed_topics

    fields = asdict(member)
    topics = subscribed_topics(bytes(fields["subscription"]))
    shown = {"assignment": sorted(map(str, assigned_partitions(bytes(fields["assignment"]))))}
    return fields | shown | ({} if topics is None else {"subscription": sorted(topics)})


def transaction_entry(key: bytes | None, value: bytes | None) -> Entry:
    """Decode the state of a transactional id; any other record is returned undecoded."""
    from ottla.coordination.transactions.records import decode_record

    record = decode_or_none(lambda: decode_record(key, value))
    if record is None:
        return data_entry(key, value)
    transaction = record.transaction
    shown = (
        None
        if transaction is None
        else {
            **asdict(transaction),
            "state": transaction.state.name,
            "partitions": sorted(map(str, transaction.partitions)),
        }
    )
    return {"key": {"transactional_id": record.transactional_id}, "payload": shown}


def decode_or_none(decode: Callable[[], Any]) -> Any:
    """Return the decoded record, or None if its type or version is unknown."""
    try:
        return decode()
    except CorruptRecordError:
        return None


def to_plain(value: Any) -> Any:
    """Convert a value for JSON."""
    if isinstance(value, Struct):
        return asdict(value)
    return to_readable(bytes(value)) if isinstance(value, bytes | bytearray | memoryview) else str(value)
