"""The records of a topic as `ottla log dump` shows them: decoded where the broker itself writes them, as text where they are text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from ottla.cli.records.record_format import readable
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
    16: "ConsumerGroupRegularExpression",
}
"""What the records of `__consumer_offsets` are called in Kafka's schemas, by the number that their keys begin with."""


def sizes_only(key: bytes | None, value: bytes | None) -> Entry:
    return {}


def renderer(topic: str) -> Callable[[bytes | None, bytes | None], Entry]:
    """How the records of a topic are shown."""
    return {METADATA: metadata_entry, OFFSETS: offsets_entry, TRANSACTIONS: transaction_entry}.get(topic, data_entry)


def data_entry(key: bytes | None, value: bytes | None) -> Entry:
    return {"key": readable(key), "payload": readable(value)}


def metadata_entry(key: bytes | None, value: bytes | None) -> Entry:
    """A record of the cluster's metadata; as it stands where its kind is not known here."""
    from ottla.coordination.cluster.records import ForeignRecord, decode_record

    record = decoded(lambda: decode_record(value or b""))
    if record is None or isinstance(record, ForeignRecord):
        kind = value[1] if value and len(value) > 2 else -1
        return {"type": kind, "payload": readable(value)}
    return {"type": type(record).__name__, "payload": asdict(record)}


def offsets_entry(key: bytes | None, value: bytes | None) -> Entry:
    """A committed offset, or what is kept of a group and its members; as it stands where it is something else."""
    from ottla.coordination.groups.records import decode_record

    record = decoded(lambda: decode_record(key, value))
    if record is None:
        return data_entry(key, value)
    kind = int.from_bytes((key or b"")[:2], "big")
    payload = None if record.value is None else asdict(record.value)
    if kind == CLASSIC_GROUP and payload is not None and payload["protocol_type"] == "consumer":
        payload["members"] = [member_entry(member) for member in payload["members"]]
    return {"type": KINDS[kind], "key": asdict(record.key), "payload": payload}


def member_entry(member: Struct) -> Entry:
    """A member of a classic group: the topics that it wants and the partitions that it has, in words."""
    from ottla.coordination.groups.classic.group import assigned_partitions, subscribed_topics

    fields = asdict(member)
    topics = subscribed_topics(bytes(fields["subscription"]))
    shown = {"assignment": sorted(map(str, assigned_partitions(bytes(fields["assignment"]))))}
    return fields | shown | ({} if topics is None else {"subscription": sorted(topics)})


def transaction_entry(key: bytes | None, value: bytes | None) -> Entry:
    """How a transactional id stands; as it stands where it is something else."""
    from ottla.coordination.transactions.records import decode_record

    record = decoded(lambda: decode_record(key, value))
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


def decoded(decode: Callable[[], Any]) -> Any:
    """A record, None where it is of a kind or version that is not known."""
    try:
        return decode()
    except CorruptRecordError:
        return None


def plain(value: Any) -> Any:
    """What JSON has no word for."""
    if isinstance(value, Struct):
        return asdict(value)
    return readable(bytes(value)) if isinstance(value, bytes | bytearray | memoryview) else str(value)
