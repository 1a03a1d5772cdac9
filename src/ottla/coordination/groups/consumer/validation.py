"""Validation of heartbeats: the fields of the request, and the identity and epoch of the member. The messages are Kafka's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ottla.coordination.groups.consumer.group import ConsumerGroup
from ottla.coordination.groups.consumer.member import LEAVING, LEAVING_FOR_A_WHILE, ConsumerMember, TopicIdPartition
from ottla.coordination.groups.consumer.refusal import RequestRejected
from ottla.coordination.regular_expression import compiled
from ottla.coordination.regular_syntax import SyntaxFault
from ottla.errors import ErrorCode
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest as Request

OWN_ID_SINCE = 1
"""From this version on a member makes up its id itself (KIP-1082)."""

FAULTS: Sequence[tuple[Callable[[Request, int], bool], str]] = (
    (lambda it, version: not it.member_id and (version >= OWN_ID_SINCE or it.member_epoch != 0), "MemberId can't be empty."),
    (lambda it, version: not it.group_id, "GroupId can't be empty."),
    (lambda it, version: it.instance_id == "", "an instance id is not empty: leave it out, or name it"),
    (lambda it, version: it.rack_id == "", "a rack is not empty: leave it out, or name it"),
    (lambda it, version: it.member_epoch == 0 and it.rebalance_timeout_ms == -1, "a joining member must send its rebalance timeout"),
    (lambda it, version: it.member_epoch == 0 and (it.topic_partitions is None or len(it.topic_partitions) > 0), "a joining member has no partitions: send an empty list of them"),
    (
        lambda it, version: it.member_epoch == 0 and it.subscribed_topic_names is None and it.subscribed_topic_regex is None,
        "a joining member must subscribe to topics by name, or by a regular expression",
    ),
    (lambda it, version: it.member_epoch == LEAVING_FOR_A_WHILE and it.instance_id is None, "only a member with an instance id can leave for a while"),
    (lambda it, version: it.member_epoch < LEAVING_FOR_A_WHILE, "a member epoch is -2 (temporarily leaving), -1 (leaving), 0 (joining) or above"),
)  # fmt: skip
"""The checks of a request, in order."""


def check_request(request: Request, version: int, assignors: Sequence[str]) -> None:
    """Refuse what cannot be meant."""
    for is_wrong, text in FAULTS:
        if is_wrong(request, version):
            raise RequestRejected(ErrorCode.INVALID_REQUEST, text)
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise RequestRejected(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"group.remote.assignor = {request.server_assignor}: not one of {', '.join(assignors)}",
        )
    if request.subscribed_topic_regex and request.member_epoch not in (LEAVING, LEAVING_FOR_A_WHILE):
        check_regex(request.subscribed_topic_regex)


def check_regex(regex: str) -> None:
    """Refuse what is no regular expression."""
    try:
        compiled(regex)
    except SyntaxFault as fault:
        raise RequestRejected(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"subscribed topics `{regex}`: invalid regular expression: {fault}",
        ) from None


def check_group_size(group: ConsumerGroup, member_id: str, most: int) -> None:
    """Refuse one more where the group is full."""
    if len(group.members) >= most and member_id not in group.members:
        raise RequestRejected(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"the group is full: it may have {most} members (group.consumer.max.size)",
        )


def check_epoch(member: ConsumerMember, epoch: int, owned: Collection[TopicIdPartition] | None) -> None:
    """Raise Refused for an epoch other than the member's. A member with the previous epoch may have lost a response."""
    # An epoch that is behind means that the answer which moved it was lost, or that this is an older process of the
    # same id.
    if epoch in (0, member.epoch):
        return
    if epoch > member.epoch:
        which = "greater"
    elif (
        epoch == member.previous_epoch
        and owned is not None
        and all(partition in member.assigned for partition in owned)
    ):
        return
    else:
        which = "smaller"
    raise RequestRejected(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"member epoch {epoch} is {which} than {member.epoch}, which the coordinator knows: give up all partitions and join again",
    )


def known_member(group: ConsumerGroup, member_id: str) -> ConsumerMember:
    """Return a member by its id."""
    member = group.members.get(member_id)
    if member is None:
        raise RequestRejected(ErrorCode.UNKNOWN_MEMBER_ID, f"group {group.group_id} has no member {member_id}")
    return member


def find_static_member(group: ConsumerGroup, instance_id: str, member_id: str) -> ConsumerMember:
    """Return the static member with an instance id; an administrator sends no member id."""
    member = group.instance(instance_id)
    if member is None:
        raise RequestRejected(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member_id not in ("", member.member_id):
        raise RequestRejected(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {member.member_id}.",
        )
    return member


def find_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    """Return the member of a request that claims to be in the group."""
    if instance_id is None:
        return known_member(group, member_id)
    return find_static_member(group, instance_id, member_id)
