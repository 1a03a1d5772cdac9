"""As many partitions for each member as for any other, and as few of them moved as that allows.

Where all read the same topics that is counting. Where they do not, partitions go to whoever has fewest of those that
read their topic, and move on until nobody could take one from somebody who has two more.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from uuid import UUID

from ottla.coordination.groups.consumer.member import Place
from ottla.coordination.groups.consumer.wishes import Assignment, Wishes


def assign_uniformly(wishes: Wishes) -> Assignment:
    """All topics together."""
    alike = len(set(wishes.readers.values())) <= 1
    return share_equally(wishes) if alike else balance(wishes)


def share_equally(wishes: Wishes) -> Assignment:
    """Among members that all read the same."""
    places = [place for topic_id in sorted(wishes.topics) for place in wishes.places(topic_id)]
    if not wishes.readers:
        return {}
    quota, extra = divmod(len(places), len(wishes.readers))
    assignment: Assignment = {}
    # One more is for those who have more already, so that they need not give it up.
    had = {member_id: wishes.kept(member_id) for member_id in wishes.readers}
    larger = sorted(wishes.readers, key=lambda member_id: len(had[member_id]), reverse=True)[:extra]
    size = {member_id: quota + (member_id in larger) for member_id in wishes.readers}
    for member_id, mine in had.items():
        assignment[member_id] = set(mine[: size[member_id]])
    taken = set().union(*assignment.values())
    free = iter([place for place in places if place not in taken])
    for member_id, mine_now in assignment.items():
        mine_now.update(islice(free, size[member_id] - len(mine_now)))
    return assignment


def balance(wishes: Wishes) -> Assignment:
    """Among members that do not read the same."""
    assignment: Assignment = {member_id: set(wishes.kept(member_id)) for member_id in wishes.readers}
    readers = {topic_id: wishes.readers_of(topic_id) for topic_id in wishes.topics}
    taken = set().union(*assignment.values())
    free = [place for topic_id in wishes.topics for place in wishes.places(topic_id) if place not in taken]
    # First what few can take, so that there is room left to even it out.
    for place in sorted(free, key=lambda place: (len(readers[place[0]]), place)):
        if readers[place[0]]:
            assignment[least(assignment, readers[place[0]])].add(place)
    even_out(assignment, readers)
    return assignment


def least(assignment: Assignment, members: Iterable[str]) -> str:
    """Who has fewest; of several the first."""
    return min(members, key=lambda member_id: len(assignment[member_id]))


def even_out(assignment: Assignment, readers: dict[UUID, list[str]]) -> None:
    """Move partitions to members that have two less, while there are any.

    Each move makes the sum of the squares of the sizes smaller, so it ends.
    """
    moved = True
    while moved:
        moved = False
        for member_id in sorted(assignment, key=lambda member_id: len(assignment[member_id]), reverse=True):
            moved |= give_away(assignment, readers, member_id)


def give_away(assignment: Assignment, readers: dict[UUID, list[str]], member_id: str) -> bool:
    """Hand on what a member has too much of."""
    moved = False
    for place in sorted(assignment[member_id], reverse=True):
        other = least(assignment, readers[place[0]])
        if len(assignment[other]) + 1 < len(assignment[member_id]):
            move(assignment, place, member_id, other)
            moved = True
    return moved


def move(assignment: Assignment, place: Place, giver: str, taker: str) -> None:
    """One partition from one member to another."""
    assignment[giver].remove(place)
    assignment[taker].add(place)
