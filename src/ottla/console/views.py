"""Views of topics and groups as JSON values. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ottla.kafka_id import text_of

if TYPE_CHECKING:
    from ottla.client.admin import (
        ConfigEntry,
        ConsumerGroupDescription,
        GroupListing,
        MemberDescription,
        ShareGroupDescription,
        ShareMemberDescription,
        SharePartitionOffsetInfo,
        StreamsGroupDescription,
        StreamsMemberDescription,
        TopicDescription,
    )
    from ottla.client.admin.health import ClusterHealth
    from ottla.model import Node, OffsetAndMetadata, PartitionInfo, TopicPartition

View = dict[str, Any]
Offsets = Mapping["TopicPartition", int]
SHARE, STREAMS = "share", "streams"
"""The protocol types of groups that are not consumer groups and have a page."""


def is_missing_copies(partition: PartitionInfo) -> bool:
    """Return true if the partition is under-replicated."""
    return len(partition.in_sync_replicas) < len(partition.replicas)


def overview(
    nodes: Iterable[Node],
    topics: Iterable[TopicDescription],
    groups: Iterable[GroupListing],
    health: ClusterHealth | None = None,
) -> View:
    """Return a summary of the cluster."""
    partitions = [partition for topic in topics for partition in topic.partitions]
    lacking = sorted((p.topic, p.partition) for p in partitions if is_missing_copies(p))
    led = Counter(partition.leader for partition in partitions)
    return {
        "brokers": [
            {"id": n.node_id, "address": str(n), "rack": n.rack, "leads": led[n.node_id]} for n in sorted(nodes)
        ],
        "topics": len({partition.topic for partition in partitions}),
        "partitions": len(partitions),
        "groups": states_of(groups),
        "under_replicated": [f"{topic}-{number}" for topic, number in lacking],
        "without_leader": sorted(f"{p.topic}-{p.partition}" for p in partitions if p.leader < 0),
        "away": [each._asdict() for each in health.absences] if health is not None else [],
    }


def states_of(groups: Iterable[GroupListing]) -> dict[str, int]:
    """Return the number of groups by state."""
    states: dict[str, int] = {}
    for group in groups:
        states[group.state or "unknown"] = states.get(group.state or "unknown", 0) + 1
    return states


def chosen_names(names: Iterable[str], text: str, start: int, most: int) -> tuple[int, list[str]]:
    """Return the number of names that contain `text`, and the ones to show."""
    found = sorted(name for name in names if text.lower() in name.lower())
    return len(found), found[start : start + most]


def topic_row(topic: TopicDescription) -> View:
    """Return the row of a topic."""
    return {
        "name": topic.name,
        "internal": topic.internal,
        "partitions": len(topic.partitions),
        "replicas": max((len(p.replicas) for p in topic.partitions), default=0),
        "under_replicated": sum(map(is_missing_copies, topic.partitions)),
    }


def topic_view(topic: TopicDescription, first: Offsets, end: Offsets, configs: Mapping[str, ConfigEntry]) -> View:
    """Return one topic; offsets are None for partitions without a leader."""
    from ottla.model import TopicPartition

    partitions = []
    for p in sorted(topic.partitions, key=lambda p: p.partition):
        tp = TopicPartition(topic.name, p.partition)
        partitions.append(
            {
                "partition": p.partition,
                "leader": p.leader,
                "replicas": p.replicas,
                "in_sync": p.in_sync_replicas,
                "first": first.get(tp),
                "end": end.get(tp),
            }
        )
    return {
        "name": topic.name,
        "id": text_of(topic.topic_id),
        "internal": topic.internal,
        "partitions": partitions,
        "configs": [config_row(configs[name]) for name in sorted(configs)],
    }


def config_row(entry: ConfigEntry) -> View:
    """Return a config of a topic; `default` is true unless the topic itself sets it."""
    is_own = entry.source == "DYNAMIC_TOPIC_CONFIG"
    return {"name": entry.name, "value": entry.value, "source": entry.source, "default": not is_own}


def groups_view(found: Iterable[GroupListing]) -> View:
    """Return consumer groups, share groups and streams groups by name, and the number of other groups by type."""
    from ottla.client.admin.group_calls import CONSUMER_PROTOCOL_TYPES

    shown = {*CONSUMER_PROTOCOL_TYPES, SHARE, STREAMS}
    listed = sorted(found, key=lambda group: group.group_id)
    others = Counter(each.protocol_type for each in listed if each.protocol_type not in shown)
    return {
        "groups": [group_row(each) for each in listed if each.protocol_type in shown],
        "others": dict(sorted(others.items())),
    }


def group_row(group: GroupListing) -> View:
    return {"name": group.group_id, "state": group.state, "type": group.type}


def group_view(
    group: ConsumerGroupDescription, committed: Mapping[TopicPartition, OffsetAndMetadata], end: Offsets
) -> View:
    """Return the partitions and members of a group with the lag of each partition."""
    owners = {tp: member.member_id for member in group.members for tp in member.assignment}
    return {
        **group_head(group, group.type, group.partition_assignor),
        "members": [member_row(member, len(member.assignment)) for member in group.members],
        "partitions": [
            partition_row(tp, committed.get(tp), end.get(tp), owners.get(tp)) for tp in sorted({*committed, *owners})
        ],
        "lag": lag_of(committed, end),
    }


def share_group_view(group: ShareGroupDescription, offsets: Mapping[TopicPartition, SharePartitionOffsetInfo]) -> View:
    """Return the partitions and members of a share group, with the start offset and the lag of each partition."""
    owners: dict[TopicPartition, list[str]] = {}
    for member in group.members:
        for tp in member.assignment:
            owners.setdefault(tp, []).append(member.member_id)
    rows = [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "offset": None if (found := offsets.get(tp)) is None else found.start_offset,
            "end": None if found is None or found.lag is None else found.start_offset + found.lag,
            "lag": None if found is None else found.lag,
            "member": ", ".join(owners.get(tp, ())) or None,
        }
        for tp in sorted({*offsets, *owners})
    ]
    return {
        **group_head(group, "Share", group.partition_assignor),
        "members": [member_row(member, len(member.assignment)) for member in group.members],
        "partitions": rows,
        "lag": sum(row["lag"] or 0 for row in rows),
    }


def streams_group_view(
    group: StreamsGroupDescription, committed: Mapping[TopicPartition, OffsetAndMetadata], end: Offsets
) -> View:
    """Return the partitions and members of a streams group, with the lag of each partition and the tasks of each member."""
    subtopologies = {topic: each.subtopology_id for each in group.subtopologies for topic in each.read_topics}
    owners = {task: member.member_id for member in group.members for task in member.assignment.active}
    return {
        **group_head(group, "Streams", ""),
        "members": [member_row(member, len(member.assignment.active)) for member in group.members],
        "partitions": [
            partition_row(tp, committed[tp], end.get(tp), owners.get((subtopologies.get(tp.topic, ""), tp.partition)))
            for tp in sorted(committed)
        ],
        "lag": lag_of(committed, end),
    }


def group_head(
    group: ConsumerGroupDescription | ShareGroupDescription | StreamsGroupDescription, kind: str, assignor: str
) -> View:
    """Return what the views of all groups have at their start."""
    return {
        "name": group.group_id,
        "state": group.state,
        "type": kind,
        "assignor": assignor,
        "coordinator": str(group.coordinator),
    }


def member_row(
    member: MemberDescription | ShareMemberDescription | StreamsMemberDescription, partition_count: int
) -> View:
    """Return the row of a member with the number of its partitions or active tasks."""
    return {
        "id": member.member_id,
        "client": member.client_id,
        "host": member.host,
        "partitions": partition_count,
    }


def reset_view(committed: Mapping[TopicPartition, OffsetAndMetadata], wanted: Offsets, end: Offsets) -> View:
    """Return the effect of a reset on each partition: records that would be read again, or skipped."""
    rows = []
    for tp in sorted(wanted):
        at = committed.get(tp)
        now = None if at is None else at.offset
        rows.append(
            {
                "topic": tp.topic,
                "partition": tp.partition,
                "offset": now,
                "new_offset": wanted[tp],
                "read_again": 0 if now is None else max(0, now - wanted[tp]),
                "skipped": 0 if now is None else max(0, wanted[tp] - now),
                "lag": max(0, end[tp] - wanted[tp]) if tp in end else None,
            }
        )
    return {"partitions": rows}


def partition_row(tp: TopicPartition, at: OffsetAndMetadata | None, end: int | None, owner: str | None) -> View:
    """Return the row of a partition that is assigned or has a committed offset."""
    offset = None if at is None else at.offset
    lag = None if offset is None or end is None else end - offset
    return {"topic": tp.topic, "partition": tp.partition, "offset": offset, "end": end, "lag": lag, "member": owner}


def lag_of(committed: Mapping[TopicPartition, OffsetAndMetadata], end: Offsets) -> int:
    """Return the sum of the lags of all partitions with a committed offset."""
    return sum(max(0, end[tp] - at.offset) for tp, at in committed.items() if tp in end)
