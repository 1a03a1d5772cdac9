"""Each topic's partitions in ranges: topics of the same size are shared out alike, so that they can be joined.

Members keep what they had as far as each is to have as many of a topic as any other, or one more.
"""

from __future__ import annotations

from itertools import islice
from uuid import UUID

from ottla.coordination.groups.consumer.member import Place
from ottla.coordination.groups.consumer.wishes import Assignment, Wishes


def assign_ranges(wishes: Wishes) -> Assignment:
    """Each topic by itself."""
    assignment: Assignment = {member_id: set() for member_id in wishes.readers}
    had: dict[tuple[str, UUID], list[Place]] = {}
    for member_id in wishes.readers:
        for place in wishes.kept(member_id):
            had.setdefault((member_id, place[0]), []).append(place)
    for topic_id in sorted(wishes.topics):
        share_out(wishes, topic_id, had, assignment)
    return assignment


def share_out(wishes: Wishes, topic_id: UUID, had: dict[tuple[str, UUID], list[Place]], assignment: Assignment) -> None:
    """One topic among those who read it."""
    members = wishes.readers_of(topic_id)
    if not members:
        return
    quota, extra = divmod(wishes.topics[topic_id], len(members))
    short: list[tuple[str, int]] = []
    for member_id in members:
        mine = had.get((member_id, topic_id), [])
        more = len(mine) > quota and extra > 0
        extra -= more
        kept = mine[: quota + more]
        assignment[member_id].update(kept)
        if not more:
            short.append((member_id, quota - len(kept)))
    taken = {place for member_id in members for place in assignment[member_id] if place[0] == topic_id}
    free = iter([place for place in wishes.places(topic_id) if place not in taken])
    for member_id, missing in short:
        more = extra > 0
        extra -= more
        assignment[member_id].update(islice(free, missing + more))
