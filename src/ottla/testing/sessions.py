"""Sessions of a group's members that end before their time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ottla.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.broker.node import BrokerNode


def expire(node: BrokerNode, group_id: str) -> int:
    """Ring for each member, in the broker's loop, as its alarm would; how many members there were."""
    group = node.groups.find(group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id!r}")
    from ottla.coordination.groups.classic.decision import SESSION
    from ottla.coordination.groups.events import AlarmName, AlarmRang

    members = list(group.members)
    for member in members:
        event = partial(AlarmRang, name=AlarmName(SESSION, group_id, member), wall_ms=node.clock.wall_ms())
        node.groups.ask(group_id, event, make=False)
    return len(members)
