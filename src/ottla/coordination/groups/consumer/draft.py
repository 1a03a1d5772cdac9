"""The effect of one event on one consumer group, while the decision is made.

The draft collects records and applies them; the group itself applies them after they were appended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ottla.coordination.groups.config import GroupConfig
from ottla.coordination.groups.consumer import records as kept
from ottla.coordination.groups.consumer.group import ConsumerGroup, MemberAssignment
from ottla.coordination.groups.consumer.image import TopicImage
from ottla.coordination.groups.consumer.member import (
    ClassicMetadata,
    ConsumerMember,
    PartitionEpochs,
    TopicIdPartition,
    by_topic,
)
from ottla.coordination.groups.consumer.records import ConsumerGroupRecord
from ottla.coordination.groups.events import TimerName
from ottla.coordination.machine import Alarm, Decision, Reply
from ottla.protocol.schema import Message

SESSION = "session"
"""The timer of a member's session."""
REVOCATION = "revocation"
"""The timer for a member to revoke partitions: its rebalance timeout."""
REJOIN = "rejoin"
"""A member that speaks the classic protocol must rejoin until then."""
FETCH = "fetch-assignment"
"""Such a member is to fetch its assignment until then."""
KINDS = (SESSION, REVOCATION, REJOIN, FETCH)


class ConsumerDraft:
    """A group on its way from one state to the next."""

    def __init__(
        self,
        group: ConsumerGroup,
        config: GroupConfig,
        image: TopicImage,
        now: float,
        wall_ms: int,
        *,
        group_is_new: bool = False,
    ) -> None:
        self.group = group
        """The group with the records written so far."""
        self.config = config
        self.image = image
        self.now = now
        self.wall_ms = wall_ms
        self._untouched = not group_is_new
        self.records: list[Any] = []
        self._replies: list[Reply] = []
        self._alarms: dict[TimerName, Alarm] = {}
        self._notes: list[Any] = []

    def write(self, key: Message, value: Message | None) -> None:
        """Write a record into the log and into the draft."""
        # Copied at the first write, as most heartbeats write nothing.
        if self._untouched:
            self.group, self._untouched = self.group.copy(), False
        record = ConsumerGroupRecord(key, value)
        self.records.append(record)
        self.group.apply(record)

    def put_member(self, member: ConsumerMember) -> None:
        """Write a member: its metadata and its assignment, each if it has changed."""
        group_id, before = self.group.group_id, self.group.members.get(member.member_id)
        if before == member:
            return
        metadata = metadata_of(member)
        if before is None or metadata_of(before) != metadata:
            self.write(kept.MemberMetadataKey(group_id, member.member_id), metadata)
        # What a member has is written when it first has an epoch.
        fresh = self.group.members[member.member_id]
        if current_of(fresh) != current_of(member):
            self.write(kept.CurrentMemberKey(group_id, member.member_id), current_of(member))

    def remove_member(self, member_id: str) -> None:
        """Take a member out with everything it has."""
        group_id = self.group.group_id
        # In this order, since each record is applied to the group at once, and a current assignment needs its member.
        self.write(kept.CurrentMemberKey(group_id, member_id), None)
        self.write(kept.TargetMemberKey(group_id, member_id), None)
        self.write(kept.MemberMetadataKey(group_id, member_id), None)
        self.cancel(member_id, *KINDS)

    def set_regex_topics(self, regex: str, topics: frozenset[str]) -> None:
        """Keep which topics an expression matches."""
        value = kept.RegularExpressionValue(sorted(topics), self.image.version, self.wall_ms)
        self.write(kept.RegularExpressionKey(self.group.group_id, regex), value)

    def drop_unused_regexes(self) -> None:
        """Forget expressions that no member has any more."""
        used = {member.regex for member in self.group.members.values()}
        for regex in [regex for regex in self.group.regexes if regex not in used]:
            self.write(kept.RegularExpressionKey(self.group.group_id, regex), None)

    def bump_epoch(self) -> None:
        """Start an epoch: the assignment has to be computed again."""
        group = self.group
        if group.has_partition_metadata:
            self.write(kept.PartitionMetadataKey(group.group_id), None)
        # The digest is that of the current topics: a later heartbeat that finds another digest starts the next epoch.
        has_subscription = bool(group.names or group.regexes)
        before = max(group.epoch, self.config.consumer_first_epoch) if has_subscription else group.epoch
        value = kept.GroupEpochValue(before + 1, self.image.digest(group.names))
        self.write(kept.GroupEpochKey(group.group_id), value)

    def set_target(self, member_id: str, target: MemberAssignment) -> None:
        """Keep what one member is to have, if that is something else than before."""
        if self.group.targets.get(member_id) != target:
            key = kept.TargetMemberKey(self.group.group_id, member_id)
            self.write(key, kept.TargetMemberValue(partitions_of(target)))

    def set_target_assignment(self, targets: Mapping[str, MemberAssignment]) -> None:
        """Keep what everybody is to have in this epoch."""
        for member_id, target in targets.items():
            self.set_target(member_id, target)
        value = kept.TargetEpochValue(self.group.epoch, self.wall_ms)
        self.write(kept.TargetEpochKey(self.group.group_id), value)

    def remove_group(self) -> None:
        """Take the whole group away."""
        for member_id in list(self.group.members):
            self.remove_member(member_id)
        for regex in list(self.group.regexes):
            self.write(kept.RegularExpressionKey(self.group.group_id, regex), None)
        self.write(kept.TargetEpochKey(self.group.group_id), None)
        if self.group.has_partition_metadata:
            self.write(kept.PartitionMetadataKey(self.group.group_id), None)
        self.write(kept.GroupEpochKey(self.group.group_id), None)

    def reply(self, ticket: int, message: Any) -> None:
        self._replies.append(Reply(ticket, message))

    def add_note(self, note: Any) -> None:
        self._notes.append(note)

    def schedule(self, kind: str, timeout_ms: int, member_id: str) -> None:
        """Start a timer of a member."""
        name = TimerName(kind, self.group.group_id, member_id)
        self._alarms[name] = Alarm(name, self.now + timeout_ms / 1000)

    def schedule_if_absent(self, kind: str, timeout_ms: int, member_id: str) -> None:
        """Schedule a timer unless there is one with the same key."""
        name = TimerName(kind, self.group.group_id, member_id)
        self._alarms[name] = Alarm(name, self.now + timeout_ms / 1000, keep=True)

    def cancel(self, member_id: str, *kinds: str) -> None:
        """Cancel timers of a member."""
        for kind in kinds:
            name = TimerName(kind, self.group.group_id, member_id)
            self._alarms[name] = Alarm(name, None)

    def start_session(self, member: ConsumerMember) -> None:
        """Restart a member's session; a classic member has sent its own session timeout."""
        own = member.classic and member.classic.session_timeout_ms
        self.schedule(SESSION, own or self.config.consumer_session_timeout_ms, member.member_id)

    def decision(self) -> Decision[Any]:
        return Decision(tuple(self.records), tuple(self._replies), tuple(self._alarms.values()), tuple(self._notes))


def metadata_of(member: ConsumerMember) -> kept.MemberMetadataValue:
    """Return the metadata record of a member."""
    classic = member.classic
    return kept.MemberMetadataValue(
        member.instance_id,
        member.rack_id,
        member.client_id,
        member.client_host,
        sorted(member.topics),
        member.regex,
        member.rebalance_timeout_ms,
        member.assignor,
        None if classic is None else classic_metadata(classic),
    )


def classic_metadata(classic: ClassicMetadata) -> kept.ClassicMemberMetadata:
    """Return the part of a member's metadata that is stored for the classic protocol."""
    protocols = [kept.ClassicProtocol(name, metadata) for name, metadata in classic.protocols]
    return kept.ClassicMemberMetadata(classic.session_timeout_ms, protocols)


def current_of(member: ConsumerMember) -> kept.CurrentMemberValue:
    """Return the current-assignment record of a member."""
    return kept.CurrentMemberValue(
        member.epoch,
        member.previous_epoch,
        member.state,
        owned_partitions(member.assigned),
        owned_partitions(member.revoking),
    )


def owned_partitions(owned: PartitionEpochs) -> list[kept.OwnedPartitions]:
    """Partitions by topic, each with its epoch."""
    return [
        kept.OwnedPartitions(topic_id, partitions, [owned[topic_id, partition] for partition in partitions])
        for topic_id, partitions in by_topic(owned).items()
    ]


def partitions_of(target: Iterable[TopicIdPartition]) -> list[kept.TopicPartitions]:
    return [kept.TopicPartitions(topic_id, partitions) for topic_id, partitions in by_topic(target).items()]
