"""Conversion of a group from the classic protocol to KIP-848 and back, while its members keep consuming.

A group is upgraded when the first member joins with the consumer protocol, and downgraded when the last such member is removed.

No member has to stop consuming. In an upgrade, the generation becomes the epoch of the group and of each member, and the leader's last
assignment becomes both the target and the current assignment: the consumer group starts Stable. Its classic members are requested by
heartbeat responses to join again, one by one as their state requires, not all at once. In a downgrade there is no leader yet that could
assign, so the classic group starts with a rebalance, with the epoch as its generation, and every member keeps its partitions until then.
In both directions the tombstones of the old form and the records of the new one are in one batch, so a crash leaves one whole form.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.coordination.groups.classic.decision import JOIN, SESSION, SYNC, ClassicGroupDecision
from ottla.coordination.groups.classic.group import CONSUMER, ClassicGroup, ClassicGroupState, ClassicMember
from ottla.coordination.groups.classic.records import ClassicGroupRecord
from ottla.coordination.groups.classic.responses import join_error_response, sync_error_response
from ottla.coordination.groups.config import GroupConfig
from ottla.coordination.groups.consumer import records as kept
from ottla.coordination.groups.consumer.classic_members import assignment_bytes, topic_id_partitions
from ottla.coordination.groups.consumer.draft import ConsumerDraft
from ottla.coordination.groups.consumer.group import ConsumerGroup
from ottla.coordination.groups.consumer.image import TopicImage
from ottla.coordination.groups.consumer.member import ClassicMetadata, ConsumerMember, TopicIdPartition
from ottla.coordination.groups.consumer.notes import GroupConverted
from ottla.coordination.groups.consumer.refusal import RequestRejected
from ottla.errors import ErrorCode
from ottla.protocol.errors import MalformedError
from ottla.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode,
)

UPGRADES = ("upgrade", "bidirectional")
DOWNGRADES = ("downgrade", "bidirectional")
"""The values of `group.consumer.migration.policy` that allow it."""
NOTHING_SHARED = 0
"""The digest of no topics."""
STATELESS = ("range", "roundrobin", "sticky", "cooperative-sticky")
"""Assignors of clients of which the user data may be dropped in a conversion, although librdkafka's sticky assignors send some.

Kafka rejects user data of these too, which makes such librdkafka groups impossible to convert.
"""


def upgrade(draft: ConsumerDraft, classic: ClassicGroup) -> None:
    """Make the draft, which is of a new group, what a classic group was; Refused where that cannot be."""
    if classic.members:
        check_upgrade(classic, draft.config)
    draft.records.append(ClassicGroupRecord.tombstone(classic.group_id))
    draft.cancel("", JOIN, SYNC)
    for pending in classic.pending:
        draft.cancel(pending, SESSION)
    if not classic.members:
        return
    for member in members_of(classic, draft.image):
        draft.put_member(member)
        draft.set_target(member.member_id, frozenset(member.assigned))
        draft.start_session(member)
    group = draft.group
    value = kept.GroupEpochValue(classic.generation, assigned_topics_digest(group, draft.image))
    draft.write(kept.GroupEpochKey(group.group_id), value)
    draft.write(kept.TargetEpochKey(group.group_id), kept.TargetEpochValue(classic.generation, draft.wall_ms))
    reject_member(draft, classic)
    draft.add_note(GroupConverted(group.group_id, ConsumerGroup.kind))


def assigned_topics_digest(group: ConsumerGroup, image: TopicImage) -> int:
    """Return the digest of the assigned topics; 0 if a partition has no owner, so that a new assignment is computed.

    The group is then in the middle of a rebalance, and a static member that replaces another would not start an epoch.
    """
    every = {(topic.topic_id, number) for topic in image.known(group.names) for number in range(topic.partitions)}
    return image.digest(group.names) if every <= group.owners.keys() else NOTHING_SHARED


def check_upgrade(classic: ClassicGroup, config: GroupConfig) -> None:
    """Refuse what Kafka refuses, in its words."""
    why = None
    if config.consumer_migration_policy not in UPGRADES:
        why = "online upgrade is disabled"
    elif classic.protocol_type != CONSUMER:
        why = f"its members speak {classic.protocol_type!r}, not {CONSUMER!r}"
    elif len(classic.members) > config.consumer_max_size:
        why = f"it has {len(classic.members)} members, and may have {config.consumer_max_size}"
    if why:
        raise upgrade_error(classic, why)


def upgrade_error(classic: ClassicGroup, why: str) -> RequestRejected:
    """Return the error for the member that caused the upgrade."""
    text = f"group {classic.group_id} stays with the classic protocol: {why}"
    return RequestRejected(ErrorCode.GROUP_ID_NOT_FOUND, text)


def members_of(classic: ClassicGroup, image: TopicImage) -> list[ConsumerMember]:
    """Return the members of a classic group, each with what the leader gave it; of two that have the same, the first."""
    taken: set[TopicIdPartition] = set()
    members = []
    for member in classic.members.values():
        subscription, partitions = read_member(classic, member, image)
        mine = [partition for partition in partitions if partition not in taken]
        taken.update(mine)
        members.append(
            ConsumerMember(
                member.member_id,
                member.instance_id,
                subscription.rack_id,
                member.client_id,
                member.client_host,
                frozenset(subscription.topics),
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                classic=ClassicMetadata(member.session_timeout_ms, member.protocols),
                epoch=classic.generation,
                previous_epoch=classic.generation,
                assigned=dict.fromkeys(mine, classic.generation),
            )
        )
    return members


def read_member(
    classic: ClassicGroup, member: ClassicMember, image: TopicImage
) -> tuple[ConsumerProtocolSubscription, Sequence[TopicIdPartition]]:
    """Return the subscription of a classic member."""
    try:
        # Members in a rebalance have not elected a protocol yet; every protocol of a member has the same subscription.
        metadata = member.metadata(classic.protocol_name) or member.protocols[0][1]
        subscription = decode(ConsumerProtocolSubscription, metadata)
        given = decode(ConsumerProtocolAssignment, member.assignment) if member.assignment else None
    except MalformedError:
        raise upgrade_error(classic, "the subscription of a member is malformed") from None
    if given is None:
        return subscription, ()
    if given.user_data and classic.protocol_name not in STATELESS:
        why = (
            f"its assignor {classic.protocol_name} keeps data of its own, which would be lost; let the members take range, "
            "roundrobin or cooperative-sticky first"
        )
        raise upgrade_error(classic, why)
    return subscription, topic_id_partitions(given.assigned_partitions, image)


def reject_member(draft: ConsumerDraft, classic: ClassicGroup) -> None:
    """Have members that wait for the end of a rebalance join again, now into the other kind of group."""
    for member in classic.members.values():
        if member.join_ticket:
            draft.reply(member.join_ticket, join_error_response(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
        if member.sync_ticket:
            draft.reply(member.sync_ticket, sync_error_response(ErrorCode.REBALANCE_IN_PROGRESS))


def is_to_downgrade(group: ConsumerGroup, config: GroupConfig) -> bool:
    """Return True if only classic members are left."""
    return (
        bool(group.members)
        and all(member.classic for member in group.members.values())
        and config.consumer_migration_policy in DOWNGRADES
        and len(group.members) <= config.max_size
    )


def downgrade(draft: ConsumerDraft) -> ClassicGroupDecision:
    """Take the draft's group away, and rebalance a classic one in its place."""
    group = draft.group
    members = {name: classic_member_of(group, member, draft.image) for name, member in group.members.items()}
    made = ClassicGroup(
        group.group_id, ClassicGroupState.STABLE, group.epoch, CONSUMER, members=members, changed_ms=draft.wall_ms
    )
    protocol = made.elected_protocol()
    made = made.changed(protocol_name=protocol, leader=next(iter(members)), topics=made.subscribed_topics(protocol))
    draft.remove_group()
    decision = ClassicGroupDecision(made, draft.config, draft.now, draft.wall_ms)
    decision.persist()
    for member in members.values():
        decision.restart_session(member)
    decision.prepare_rebalance("the last member of the new protocol left: the group continues with the classic one")
    draft.add_note(GroupConverted(group.group_id, ClassicGroup.kind))
    return decision


def classic_member_of(group: ConsumerGroup, member: ConsumerMember, image: TopicImage) -> ClassicMember:
    """Return a member as the classic machine knows it."""
    assert member.classic is not None
    return ClassicMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.classic.session_timeout_ms,
        member.classic.protocols,
        assignment_bytes(member, group.target(member.member_id), image),
    )
