"""The changes of a group between two descriptions.

Pure. A broker does not give clients the cause of a rebalance. State, members and assignments show which members joined or left
and which partitions moved. A change that is undone between two descriptions is not seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.client.admin import ConsumerGroupDescription, MemberDescription
    from ottla.model import TopicPartition

STABLE = "Stable"


class GroupTimeline:
    """Keeps the last description, and the assignment of the last stable state."""

    def __init__(self) -> None:
        self._last: ConsumerGroupDescription | None = None
        self._owners: dict[TopicPartition, str] = {}

    def changes(self, group: ConsumerGroupDescription) -> list[str]:
        """Return one sentence per change since the last description."""
        before, self._last = self._last, group
        if before is None:
            self._owners = owners_by_partition(group)
            return [f"{group.state}, {counted(len(group.members), 'member')}"]
        lines = member_changes(before.members, group.members)
        if group.group_epoch != before.group_epoch:
            lines.append(f"epoch {group.group_epoch}")
        if group.state != before.state:
            lines.append(f"{before.state} → {group.state}, {counted(len(group.members), 'member')}")
        if group.state == STABLE:
            now, self._owners, was = owners_by_partition(group), owners_by_partition(group), self._owners
            lines += describe_moves(was, now, names_of((*before.members, *group.members)))
        return lines


def member_changes(before: Iterable[MemberDescription], after: Iterable[MemberDescription]) -> list[str]:
    """Return lines for members that joined or left; a static member that returns under a new id did neither."""
    was, now = ({member.member_id: member for member in members} for members in (before, after))
    left = [member for member_id, member in was.items() if member_id not in now]
    new = [member for member_id, member in now.items() if member_id not in was]
    instances = {member.group_instance_id for member in left} - {None}
    lines = [
        f"static member {member.group_instance_id} is back under a new id"
        for member in new
        if member.group_instance_id in instances
    ]
    back = {member.group_instance_id for member in new} - {None}
    lines += [f"{name_of(member)} has joined" for member in new if member.group_instance_id not in instances]
    lines += [f"{name_of(member)} has left or timed out" for member in left if member.group_instance_id not in back]
    return lines


def describe_moves(
    was: Mapping[TopicPartition, str], now: Mapping[TopicPartition, str], names: Mapping[str, str]
) -> list[str]:
    """Return a line per owner about its new partitions; names are compared, since the ids of static members change."""
    gained: dict[str, list[TopicPartition]] = {}
    for tp, owner in sorted(now.items()):
        if names.get(was.get(tp, "")) != names[owner]:
            gained.setdefault(names[owner], []).append(tp)
    return [f"{name} has got {', '.join(map(str, tps))}" for name, tps in gained.items()]


def owners_by_partition(group: ConsumerGroupDescription) -> dict[TopicPartition, str]:
    return {tp: member.member_id for member in group.members for tp in member.assignment}


def names_of(members: Iterable[MemberDescription]) -> dict[str, str]:
    return {member.member_id: name_of(member) for member in members}


def name_of(member: MemberDescription) -> str:
    """Return the displayed name: the static name, or the client id and the start of the member id's random part."""
    if member.group_instance_id and member.client_id.endswith(member.group_instance_id):
        return member.client_id
    if member.group_instance_id:
        return f"{member.client_id} [{member.group_instance_id}]"
    return f"{member.client_id} ({member.member_id.removeprefix(member.client_id).lstrip('-')[:4]})"


def counted(number: int, noun: str, plural: str = "") -> str:
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"
