"""Each topic's partitions in ranges: topics of the same size are shared out alike, so that they can be joined.

Members keep what they had as far as each is to have as many of a topic as any other, or one more.
"""

from __future__ import annotations

from itertools import islice
from uuid import UUID

from ottla.coordination.groups.consumer.group_spec import GroupAssignment, GroupSpec
from ottla.coordination.groups.consumer.member import TopicIdPartition


def assign_ranges(spec: GroupSpec) -> GroupAssignment:
    assignment: GroupAssignment = {member_id: set() for member_id in spec.readers}
    had: dict[tuple[str, UUID], list[TopicIdPartition]] = {}
    for member_id in spec.readers:
        for partition in spec.kept(member_id):
            had.setdefault((member_id, partition[0]), []).append(partition)
    for topic_id in sorted(spec.topics):
        assign_topic(spec, topic_id, had, assignment)
    return assignment


def assign_topic(
    spec: GroupSpec, topic_id: UUID, had: dict[tuple[str, UUID], list[TopicIdPartition]], assignment: GroupAssignment
) -> None:
    """Assign the partitions of one topic to the members that read it."""
    members = spec.readers_of(topic_id)
    if not members:
        return
    quota, extra = divmod(spec.topics[topic_id], len(members))
    short: list[tuple[str, int]] = []
    for member_id in members:
        mine = had.get((member_id, topic_id), [])
        more = len(mine) > quota and extra > 0
        extra -= more
        kept = mine[: quota + more]
        assignment[member_id].update(kept)
        if not more:
            short.append((member_id, quota - len(kept)))
    taken = {partition for member_id in members for partition in assignment[member_id] if partition[0] == topic_id}
    free = iter([partition for partition in spec.partitions(topic_id) if partition not in taken])
    for member_id, missing in short:
        more = extra > 0
        extra -= more
        assignment[member_id].update(islice(free, missing + more))
