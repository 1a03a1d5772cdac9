"""Members of a consumer group that use the classic protocol, while the group is converted from one to the other.

Their JoinGroup is handled as a full heartbeat. Their generation is their member epoch, no member is the leader, and SyncGroup returns the
assignment that the coordinator computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from ottla.coordination.groups.classic.decision import MEMBER_ID_REQUIRED_VERSION, protocols_of, rebalance_timeout_ms
from ottla.coordination.groups.classic.group import format_reason
from ottla.coordination.groups.classic.responses import join_error_response
from ottla.coordination.groups.consumer.draft import FETCH, REJOIN, ConsumerDraft
from ottla.coordination.groups.consumer.group import ConsumerGroup
from ottla.coordination.groups.consumer.heartbeats import reconcile_member, replace_static_member
from ottla.coordination.groups.consumer.image import TopicImage
from ottla.coordination.groups.consumer.leaving import remove_members
from ottla.coordination.groups.consumer.member import (
    ClassicMetadata,
    ConsumerMember,
    MemberState,
    PartitionEpochs,
    TopicIdPartition,
    by_topic,
)
from ottla.coordination.groups.consumer.notes import MemberJoined
from ottla.coordination.groups.consumer.refusal import RequestRejected
from ottla.coordination.groups.consumer.subscribing import subscribe
from ottla.coordination.groups.consumer.validation import check_group_size, find_member, find_static_member
from ottla.coordination.groups.events import HeartbeatReceived, JoinRequested, LeaveRequested, SyncRequested
from ottla.errors import ErrorCode
from ottla.protocol.errors import MalformedError
from ottla.protocol.messages.consumer_protocol import (
    PROTOCOL_TYPE,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode,
    encode,
)
from ottla.protocol.messages.consumer_protocol import (
    TopicPartition as TopicIndexes,
)
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.protocol.messages.leave_group import MemberIdentity
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse


def join(draft: ConsumerDraft, event: JoinRequested) -> None:
    """Handle a member that joins for the first time or again."""
    request = event.request
    check_timeout(draft, request)
    check_group_size(draft.group, request.member_id, draft.config.consumer_max_size)
    subscription = read_subscription(draft.group, request)
    if not request.member_id and request.group_instance_id is None and event.version >= MEMBER_ID_REQUIRED_VERSION:
        draft.reply(event.ticket, join_error_response(ErrorCode.MEMBER_ID_REQUIRED, event.new_member_id))
        return
    check_not_removed(draft.group, request, subscription)
    before = joining(draft, request, event.new_member_id)
    is_changed = subscribe(draft, before, updated_member(before, event, subscription))
    member = reconcile_member(
        draft, before.member_id, owned_partitions(subscription, draft.image), is_changed=is_changed
    )
    draft.cancel(member.member_id, REJOIN)
    draft.start_session(member)
    draft.schedule(FETCH, member.rebalance_timeout_ms, member.member_id)
    draft.reply(event.ticket, joined(member))


def check_timeout(draft: ConsumerDraft, request: JoinGroupRequest) -> None:
    """Refuse a session timeout that the broker does not grant."""
    config = draft.config
    if not config.min_session_timeout_ms <= request.session_timeout_ms <= config.max_session_timeout_ms:
        text = f"session.timeout.ms = {request.session_timeout_ms} is not between the broker's limits"
        raise RequestRejected(ErrorCode.INVALID_SESSION_TIMEOUT, text)


def read_subscription(group: ConsumerGroup, request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    """Return the subscription of a member. Raise Refused if it is no consumer, or supports no protocol of the other classic members."""
    names = {protocol.name for protocol in request.protocols}
    try:
        if request.protocol_type == PROTOCOL_TYPE and names and supports(group, names):
            return decode(ConsumerProtocolSubscription, request.protocols[0].metadata)
    except MalformedError:
        pass
    text = f"{request.member_id} names no assignor that all members know"
    raise RequestRejected(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, text)


def check_not_removed(
    group: ConsumerGroup, request: JoinGroupRequest, subscription: ConsumerProtocolSubscription
) -> None:
    """Raise Refused for a removed member that still claims partitions, which may belong to others now: it has to give them up first."""
    is_new = request.group_instance_id is None and request.member_id not in group.members
    if request.member_id and is_new and subscription.owned_partitions:
        raise RequestRejected(ErrorCode.UNKNOWN_MEMBER_ID, f"{request.member_id} has been removed from the group")


def supports(group: ConsumerGroup, names: set[str]) -> bool:
    """Return True if all classic members support one of these protocols."""
    others = [{name for name, _ in each.classic.protocols} for each in group.members.values() if each.classic]
    return not others or bool(names.intersection(*others))


def joining(draft: ConsumerDraft, request: JoinGroupRequest, new_member_id: str) -> ConsumerMember:
    """Return the member that joins: a known one, a new one, or a static member in its previous place."""
    group, instance_id = draft.group, request.group_instance_id
    member_id = request.member_id or new_member_id
    if instance_id is not None and request.member_id:
        return find_static_member(group, instance_id, request.member_id)
    known = group.members.get(member_id)
    old = group.instance(instance_id)
    if old is not None:
        return replace_static_member(draft, old, member_id, "classic")
    if known is None:
        draft.add_note(MemberJoined(group.group_id, member_id, instance_id, "classic"))
    return known or ConsumerMember(member_id)


def updated_member(
    member: ConsumerMember, event: JoinRequested, subscription: ConsumerProtocolSubscription
) -> ConsumerMember:
    """Return a member with the values of its JoinGroup."""
    request = event.request
    return replace(
        member,
        instance_id=member.instance_id if request.group_instance_id is None else request.group_instance_id,
        rack_id=member.rack_id if subscription.rack_id is None else subscription.rack_id,
        rebalance_timeout_ms=rebalance_timeout_ms(request),
        topics=frozenset(subscription.topics),
        regex="",
        client_id=event.client_id,
        client_host=event.client_host,
        classic=ClassicMetadata(request.session_timeout_ms, protocols_of(request)),
    )


def owned_partitions(subscription: ConsumerProtocolSubscription, image: TopicImage) -> list[TopicIdPartition]:
    """Return the partitions that the member claims to own. An eager member, which revokes all before it joins, claims none."""
    return topic_id_partitions(subscription.owned_partitions, image)


def topic_id_partitions(partitions: Iterable[TopicIndexes], image: TopicImage) -> list[TopicIdPartition]:
    """Partitions by their topic's id; those of topics that are no more are left out."""
    return [
        (image.topics[each.topic].topic_id, partition)
        for each in partitions
        if each.topic in image.topics
        for partition in each.partitions
    ]


def joined(member: ConsumerMember) -> JoinGroupResponse:
    """Return the JoinGroup response; the member is always a follower."""
    return JoinGroupResponse(
        generation_id=member.epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=protocol_of(member),
        member_id=member.member_id,
    )


def protocol_of(member: ConsumerMember) -> str:
    """Return the protocol name for the response, although no member assigns by it."""
    assert member.classic is not None
    return member.classic.protocols[0][0]


def sync(draft: ConsumerDraft, event: SyncRequested) -> None:
    """Handle a SyncGroup: a member fetches its assignment."""
    request = event.request
    member = classic_member(draft.group, request.member_id, request.group_instance_id, request.generation_id)
    check_protocol(member, request)
    # A newer target exists than the one that SyncGroup would return. A member that has to revoke syncs nevertheless: with the
    # cooperative protocol that is how it is notified of the partitions to revoke.
    if draft.group.epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        draft.schedule_if_absent(REJOIN, member.rebalance_timeout_ms, member.member_id)
        draft.reply(event.ticket, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        return
    draft.cancel(member.member_id, FETCH)
    draft.start_session(member)
    assignment = assignment_bytes(member, member.assigned, draft.image)
    draft.reply(event.ticket, SyncGroupResponse(0, 0, request.protocol_type, request.protocol_name, assignment))


def classic_member(group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int) -> ConsumerMember:
    """Return the classic member, after a check of its generation."""
    member = find_member(group, member_id, instance_id)
    if member.classic is None:
        raise RequestRejected(
            ErrorCode.UNKNOWN_MEMBER_ID,
            f"{member_id} speaks the consumer protocol, and this is a request of the classic one",
        )
    if generation != member.epoch:
        raise RequestRejected(
            ErrorCode.ILLEGAL_GENERATION,
            f"member {member_id} is in generation {member.epoch}, not {generation}",
        )
    return member


def check_protocol(member: ConsumerMember, request: SyncGroupRequest) -> None:
    """Refuse what is not what the join was answered with."""
    if request.protocol_type in (None, PROTOCOL_TYPE) and request.protocol_name in (None, protocol_of(member)):
        return
    text = f"{request.protocol_type} {request.protocol_name} is not what the join was answered with"
    raise RequestRejected(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, text)


def assignment_bytes(
    member: ConsumerMember, owned: PartitionEpochs | Iterable[TopicIdPartition], image: TopicImage
) -> bytes:
    """Partitions as the consumer protocol has them, in the version that the member has used."""
    assert member.classic is not None
    metadata = member.classic.protocols[0][1]
    version = min(int.from_bytes(metadata[:2], "big"), ConsumerProtocolAssignment.VERSIONS.last)
    named = ((image.name_of(topic_id), indexes) for topic_id, indexes in by_topic(owned).items())
    topics = [TopicIndexes(name, partitions) for name, partitions in named if name is not None]
    return encode(ConsumerProtocolAssignment(topics), version)


def classic_heartbeat(draft: ConsumerDraft, event: HeartbeatReceived) -> None:
    """Handle a heartbeat; the response requests a rejoin if necessary."""
    request = event.request
    member = classic_member(draft.group, request.member_id, request.group_instance_id, request.generation_id)
    draft.start_session(member)
    if has_to_rejoin(draft.group, member):
        draft.schedule_if_absent(REJOIN, member.rebalance_timeout_ms, member.member_id)
        draft.reply(event.ticket, ErrorCode.REBALANCE_IN_PROGRESS)
    else:
        draft.reply(event.ticket, ErrorCode.NONE)


def has_to_rejoin(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Return True if there is a new epoch, a partition to revoke, or a partition to be assigned."""
    match member.state:
        # A classic member acknowledges a revocation by joining again.
        case MemberState.UNREVOKED_PARTITIONS:
            return True
        case MemberState.UNRELEASED_PARTITIONS if not group.is_waiting_for_others(member):
            return True
    return member.epoch < group.epoch


def leave(draft: ConsumerDraft, event: LeaveRequested) -> None:
    """Remove members that leave, or that an administrator removes; they may use either protocol."""
    errors: list[int] = []
    gone: dict[str, ConsumerMember] = {}
    for identity in event.members:
        error, member = find_leaving_member(draft.group, identity)
        errors.append(error)
        if member is not None:
            gone[member.member_id] = member
    remove_members(draft, gone.values(), f"it has left{format_reason(reasons_of(event.members))}")
    draft.reply(event.ticket, errors)


def find_leaving_member(group: ConsumerGroup, identity: MemberIdentity) -> tuple[int, ConsumerMember | None]:
    """Return an error code, or the member that leaves."""
    try:
        return ErrorCode.NONE, find_member(group, identity.member_id, identity.group_instance_id)
    except RequestRejected as refused:
        return refused.code, None


def reasons_of(members: Sequence[MemberIdentity]) -> str:
    return ", ".join(dict.fromkeys(member.reason for member in members if member.reason))
