"""The share groups of one partition of `__consumer_offsets`: which members read which partitions (KIP-932).

    heartbeat ──► identify the member, compare its subscription        subscription → group epoch
              ──► request states for new partitions                    initializing partitions
              ──► compute the assignment over partitions with a state  assignor     → target assignment
              ──► the member has its target at once                    target       → member epoch, current assignment

It is the protocol of consumer groups (`consumer/`) without reconciliation: partitions are shared, so a member waits for no other. Epochs, the
session and the target assignment are those of consumer groups; there are no static members, no regular expressions, no assignor to choose.

A group may read a partition only after the share coordinator has a state for it. The record ShareGroupStatePartitionMetadata lists the
partitions that are *initializing*, *initialized* and *deleting*. It is written first, then the caller sends the requests of
`list_initializations`, and reports the results as `StateInitialized`. The next heartbeat finds partitions that are initialized
and not assigned, and starts an epoch. After a crash the caller sends all requests again; the share coordinator ignores a repetition.

Altered offsets start a group epoch too, because the group epoch is the epoch of the state: the leader of the partition is fenced by it
(KAFKA-20910).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from msgspec.structs import replace

from ottla.coordination.groups.config import ShareGroupConfig
from ottla.coordination.groups.consumer.image import TopicImage
from ottla.coordination.groups.consumer.member import LEAVING, TopicIdPartition, by_topic
from ottla.coordination.groups.consumer.refusal import RequestRejected
from ottla.coordination.groups.events import TimerExpired, TimerName
from ottla.coordination.groups.share import records as kept
from ottla.coordination.groups.share.events import (
    UNKNOWN_OFFSET,
    DescribedPartitions,
    Initialization,
    InitialOffset,
    OffsetChanges,
    OffsetDeletions,
    ShareGroupDeletionStarted,
    ShareGroupEvent,
    ShareHeartbeat,
    ShareOffsetsAlterRequested,
    ShareOffsetsDeleteRequested,
    ShareTopicsDeleted,
    StateDeleted,
    StateInitialized,
)
from ottla.coordination.groups.share.group import (
    Partitions,
    ShareGroup,
    ShareMember,
    StateProgress,
    progress_value,
)
from ottla.coordination.groups.share.notes import (
    ShareEpochBegun,
    ShareMemberGone,
    ShareMemberJoined,
    ShareTargetChanged,
)
from ottla.coordination.groups.share.records import ShareGroupRecord
from ottla.coordination.groups.share.simple_assignor import ShareGroupSpec, assign_simply
from ottla.coordination.machine import Alarm, Decision, Reply
from ottla.digests import compute_fingerprint
from ottla.errors import ErrorCode
from ottla.protocol.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from ottla.protocol.schema import Message

SESSION = "share-session"
"""The timer of a member's session."""
ASSIGNOR = "simple"
"""The name of the assignor in descriptions of groups."""


FAULTS: Sequence[tuple[Callable[[ShareGroupHeartbeatRequest], bool], str]] = (
    (lambda it: not it.member_id, "a member of a share group creates its own id: the member id is empty"),
    (lambda it: not it.group_id, "the group id is empty"),
    (lambda it: it.rack_id == "", "the rack id is empty: omit it, or set a name"),
    (lambda it: it.member_epoch < LEAVING, "a member epoch is -1 (leaving), 0 (joining) or above"),
    (lambda it: it.member_epoch == 0 and not it.subscribed_topic_names, "a member that joins sends the names of its topics"),
)  # fmt: skip
"""The checks of a heartbeat, in order."""


class ShareDraft:
    """The effect of one event on one group, while the decision is made. It applies the records to a copy."""

    def __init__(self, group: ShareGroup, now: float, wall_ms: int) -> None:
        self.group = group
        self._is_copied = False
        self._now = now
        self._wall_ms = wall_ms
        self.records: list[ShareGroupRecord] = []
        self._replies: list[Reply] = []
        self._alarms: dict[TimerName, Alarm] = {}
        self._notes: list[Any] = []

    def write(self, key: Message, value: Message | None) -> None:
        # Copied at the first write, as most heartbeats write nothing.
        if not self._is_copied:
            self.group, self._is_copied = self.group.copy(), True
        record = ShareGroupRecord(key, value)
        self.records.append(record)
        self.group.apply(record)

    def put(self, member: ShareMember) -> None:
        """Write a member: its metadata and its assignment, each if it has changed."""
        group_id, before = self.group.group_id, self.group.members.get(member.member_id)
        if before is None or metadata_of(before) != metadata_of(member):
            self.write(kept.ShareGroupMemberMetadataKey(group_id, member.member_id), metadata_of(member))
        if current_of(self.group.members[member.member_id]) != current_of(member):
            self.write(kept.ShareGroupCurrentMemberAssignmentKey(group_id, member.member_id), current_of(member))

    def remove(self, member_id: str, why: str) -> None:
        """Delete the records of a member. The current assignment first, because it needs its member."""
        group_id = self.group.group_id
        self.write(kept.ShareGroupCurrentMemberAssignmentKey(group_id, member_id), None)
        self.write(kept.ShareGroupTargetAssignmentMemberKey(group_id, member_id), None)
        self.write(kept.ShareGroupMemberMetadataKey(group_id, member_id), None)
        self._alarms[TimerName(SESSION, group_id, member_id)] = Alarm(TimerName(SESSION, group_id, member_id), None)
        self._notes.append(ShareMemberGone(group_id, member_id, why))

    def begin_epoch(self, metadata_hash: int, reason: str) -> None:
        value = kept.ShareGroupMetadataValue(self.group.epoch + 1, metadata_hash)
        self.write(kept.ShareGroupMetadataKey(self.group.group_id), value)
        self._notes.append(ShareEpochBegun(self.group.group_id, self.group.epoch, reason))

    def set_progress(self, progress: StateProgress) -> None:
        if progress != self.group.progress:
            key = kept.ShareGroupStatePartitionMetadataKey(self.group.group_id)
            self.write(key, None if progress.is_empty else progress_value(progress))

    def set_target_assignment(self, targets: Mapping[str, Partitions]) -> None:
        group_id = self.group.group_id
        for member_id, target in targets.items():
            if self.group.targets.get(member_id) != target:
                value = kept.ShareGroupTargetAssignmentMemberValue(
                    [kept.TopicPartition(topic_id, found) for topic_id, found in by_topic(target).items()]
                )
                self.write(kept.ShareGroupTargetAssignmentMemberKey(group_id, member_id), value)
        epoch = kept.ShareGroupTargetAssignmentMetadataValue(self.group.epoch, self._wall_ms)
        self.write(kept.ShareGroupTargetAssignmentMetadataKey(group_id), epoch)
        self._notes.append(ShareTargetChanged(group_id, self.group.epoch, len(targets)))

    def remove_group(self) -> None:
        group_id = self.group.group_id
        for member_id in list(self.group.members):
            self.remove(member_id, "the group was deleted")
        self.write(kept.ShareGroupTargetAssignmentMetadataKey(group_id), None)
        if not self.group.progress.is_empty:
            self.write(kept.ShareGroupStatePartitionMetadataKey(group_id), None)
        self.write(kept.ShareGroupMetadataKey(group_id), None)

    def begin_session(self, member_id: str, timeout_ms: int) -> None:
        name = TimerName(SESSION, self.group.group_id, member_id)
        self._alarms[name] = Alarm(name, self._now + timeout_ms / 1000)

    def reply(self, ticket: int, message: Any) -> None:
        self._replies.append(Reply(ticket, message))

    def record_note(self, note: Any) -> None:
        self._notes.append(note)

    def decision(self) -> Decision[ShareGroupRecord]:
        return Decision(tuple(self.records), tuple(self._replies), tuple(self._alarms.values()), tuple(self._notes))


INITIALIZING_INTERVAL_MS = 200
"""The heartbeat interval while partitions are initializing. The first member of a group would otherwise wait a whole interval,
5 s by default, for its first assignment, as it does in Apache Kafka.
"""


class ShareGroups:
    """Groups by id. `image` has the topics of the cluster, as they were seen last."""

    def __init__(self, config: ShareGroupConfig | None = None) -> None:
        self.config = config or ShareGroupConfig()
        self.image = TopicImage()
        """Replaced by the caller whenever the topics of the cluster have changed."""
        self.settings: Mapping[str, Mapping[str, int]] = {}
        """The settings of groups with own configs, by group id; replaced whenever they have changed."""
        self.groups: dict[str, ShareGroup] = {}
        self._digests: dict[str, tuple[TopicImage, StateProgress, frozenset[str], int]] = {}
        """The last digest of each group and what it was computed from, because every heartbeat needs it."""

    def decide(self, event: ShareGroupEvent, now: float) -> Decision[ShareGroupRecord]:
        return DECIDES[type(event)](self, event, now)

    def replay(self, record: ShareGroupRecord) -> None:
        """Apply a record. A tombstone of an unknown group is ignored."""
        group_id = record.group_id
        if isinstance(record.key, kept.ShareGroupMetadataKey) and record.value is None:
            self.groups.pop(group_id, None)
            self._digests.pop(group_id, None)
            return
        if group_id not in self.groups:
            if record.value is None:
                return
            self.groups[group_id] = ShareGroup(group_id)
        self.groups[group_id].apply(record)

    def check(self) -> None:
        for name, group in self.groups.items():
            assert group.group_id == name
            group.check()

    def handle_timer(self, event: TimerExpired, now: float) -> Decision[ShareGroupRecord]:
        """Remove a member whose session has expired."""
        group = self.groups.get(event.name.group)
        if group is None or event.name.member not in group.members:
            return Decision()
        draft = ShareDraft(group, now, event.wall_ms)
        self._remove_member(draft, event.name.member, "the member session expired")
        return draft.decision()

    def loaded(self, now: float, wall_ms: int) -> list[Decision[ShareGroupRecord]]:
        """Give every member a new session after the groups were read from the log."""
        return [self._resumed(ShareDraft(group, now, wall_ms)) for group in self.groups.values()]

    def list_initializations(self, group_ids: Iterable[str] | None = None) -> Iterator[Initialization]:
        """Yield the states that groups wait for; for the named groups only, or for all.

        A partition that was added to a topic which the group reads starts at 0, or its first records would be skipped (KAFKA-20742).
        """
        for group_id in list(self.groups) if group_ids is None else group_ids:
            group = self.groups.get(group_id)
            if group is None or not group.progress.initializing:
                continue
            known = {topic_id for topic_id, _ in group.progress.initialized}
            offsets = [
                InitialOffset(topic_id, index, 0 if topic_id in known else UNKNOWN_OFFSET)
                for topic_id, index in sorted(group.progress.initializing)
            ]
            yield Initialization(group_id, group.epoch, tuple(offsets))

    def list_deletions(self) -> Iterator[tuple[str, UUID]]:
        """Yield each group with each topic whose states it deletes, to send the requests again after a restart."""
        return ((name, topic) for name, group in self.groups.items() for topic in sorted(group.progress.deleting))

    def find_described_partitions(
        self, group_id: str, topics: Mapping[str, Sequence[int]] | None
    ) -> ErrorCode | DescribedPartitions:
        """Return what DescribeShareGroupOffsets has to read for these topics; None for all that have a state."""
        group = self.groups.get(group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if topics is None:
            return DescribedPartitions(tuple(sorted(group.progress.initialized)))
        partitions: list[TopicIdPartition] = []
        errors: dict[tuple[str, int], ErrorCode] = {}
        for name, indexes in topics.items():
            topic = self.image.topics.get(name)
            for index in indexes:
                if topic is None or not 0 <= index < topic.partitions:
                    errors[name, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                else:
                    partitions.append((topic.topic_id, index))
        return DescribedPartitions(tuple(partitions), errors)

    def delete_error(self, group_id: str) -> ErrorCode:
        """Return the error for deleting a group."""
        group = self.groups.get(group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return ErrorCode.NON_EMPTY_GROUP if group.members else ErrorCode.NONE

    def tombstones(self, group_id: str) -> tuple[ShareGroupRecord, ...]:
        """Return the records that delete a group, after its states were deleted."""
        draft = ShareDraft(self.groups[group_id], 0.0, 0)
        draft.remove_group()
        return tuple(draft.records)

    def _heartbeat(self, event: ShareHeartbeat, now: float) -> Decision[ShareGroupRecord]:
        request = event.request
        try:
            check_request(request)
            group = self._find_group(request)
            draft = ShareDraft(group, now, event.wall_ms)
            if request.member_epoch == LEAVING:
                self._leave(draft, event)
            else:
                self._join_or_stay(draft, event)
        except RequestRejected as refused:
            answer = ShareGroupHeartbeatResponse(error_code=refused.code, error_message=str(refused))
            return Decision(replies=(Reply(event.ticket, answer),))
        return draft.decision()

    def _find_group(self, request: ShareGroupHeartbeatRequest) -> ShareGroup:
        group = self.groups.get(request.group_id)
        if group is not None:
            return group
        if request.member_epoch != 0:
            raise RequestRejected(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no share group {request.group_id}")
        return ShareGroup(request.group_id)

    def _leave(self, draft: ShareDraft, event: ShareHeartbeat) -> None:
        member = known_member(draft.group, event.request.member_id)
        self._remove_member(draft, member.member_id, "it has left")
        draft.reply(event.ticket, ShareGroupHeartbeatResponse(member_id=member.member_id, member_epoch=LEAVING))

    def _remove_member(self, draft: ShareDraft, member_id: str, why: str) -> None:
        draft.remove(member_id, why)
        draft.begin_epoch(self._digest(draft.group), f"member {member_id} is removed: {why}")

    def _join_or_stay(self, draft: ShareDraft, event: ShareHeartbeat) -> None:
        request, group = event.request, draft.group  # the group before the first record
        member = group.members.get(request.member_id)
        if request.member_epoch == 0:
            if member is None and len(group.members) >= self.config.max_size:
                raise RequestRejected(
                    ErrorCode.GROUP_MAX_SIZE_REACHED,
                    f"the group is full: it may have {self.config.max_size} members (group.share.max.size)",
                )
            if member is None:
                draft.record_note(ShareMemberJoined(group.group_id, request.member_id))
        else:
            member = known_member(group, request.member_id)
            check_epoch(member, request.member_epoch)
        before = member or ShareMember(request.member_id)
        draft.put(updated_member(before, event))
        self._request_states(draft)
        reason = self._new_epoch_reason(draft.group, before, request.member_id)
        if reason:
            draft.begin_epoch(self._digest(draft.group), reason)
        self._update_target_assignment(draft)
        after = self._move_to_target(draft, request.member_id)
        own = self.settings.get(group.group_id, {})
        session_ms = own.get("share_session_timeout_ms", self.config.session_timeout_ms)
        draft.begin_session(request.member_id, session_ms)
        is_new = request.member_epoch == 0 or after.assigned != before.assigned
        # A member with the previous epoch did not receive the last response.
        has_lost_response = request.member_epoch != before.epoch
        interval_ms = own.get("share_heartbeat_interval_ms", self.config.heartbeat_interval_ms)
        if draft.group.progress.initializing:
            interval_ms = min(interval_ms, INITIALIZING_INTERVAL_MS)
        answer = ShareGroupHeartbeatResponse(
            member_id=after.member_id,
            member_epoch=after.epoch,
            heartbeat_interval_ms=interval_ms,
            assignment=assignment_of(after.assigned) if is_new or has_lost_response else None,
        )
        draft.reply(event.ticket, answer)

    def _request_states(self, draft: ShareDraft) -> None:
        """Add the partitions of subscribed topics without a state to the initializing ones."""
        progress = draft.group.progress
        topics = list(self.image.known(draft.group.names))
        present = {(topic.topic_id, index) for topic in topics for index in range(topic.partitions)}
        missing = {
            each for each in present - progress.initialized - progress.initializing if each[0] not in progress.deleting
        }
        if missing:
            names = {**progress.names, **{topic.topic_id: topic.name for topic in topics}}
            draft.set_progress(replace(progress, initializing=progress.initializing | missing, names=names))

    def _new_epoch_reason(self, group: ShareGroup, before: ShareMember, member_id: str) -> str:
        """Return the reason for which the target assignment is outdated; empty if it is not."""
        if group.epoch == 0:
            return "it is new"
        if before.topics != group.members[member_id].topics:
            return f"member {member_id} has changed its subscription"
        if self._digest(group) != group.metadata_hash:
            return "its topics or their states have changed"
        return ""

    def _digest(self, group: ShareGroup) -> int:
        """Return a number (int64) that changes with the topics of the group and with the partitions that have a state."""
        cached = self._digests.get(group.group_id)
        if cached is not None and cached[0] is self.image and cached[1] is group.progress and cached[2] == group.names:
            return cached[3]
        text = f"{self.image.digest(group.names)} {self._assignable(group)}"
        digest = int.from_bytes(compute_fingerprint(text.encode()), "big", signed=True)
        self._digests[group.group_id] = (self.image, group.progress, group.names, digest)
        return digest

    def _assignable(self, group: ShareGroup) -> list[TopicIdPartition]:
        """Return the partitions that the group may read, in order: those with a state, of topics that exist."""
        topics = {topic.topic_id: topic.partitions for topic in self.image.known(group.names)}
        return sorted(each for each in group.progress.initialized if each[1] < topics.get(each[0], 0))

    def _update_target_assignment(self, draft: ShareDraft) -> None:
        """Compute the target assignment if the present one is for an earlier epoch."""
        group = draft.group
        if group.epoch <= group.assignment_epoch:
            return
        partitions = by_topic(self._assignable(group))
        readers = {name: self.image.ids_of(group.members[name].topics) for name in sorted(group.members)}
        assignment = assign_simply(ShareGroupSpec(partitions, readers, group.targets))
        draft.set_target_assignment({name: frozenset(found) for name, found in assignment.items()})

    def _move_to_target(self, draft: ShareDraft, member_id: str) -> ShareMember:
        group = draft.group
        member = group.members[member_id]
        if member.epoch != group.assignment_epoch:
            member = replace(
                member,
                epoch=group.assignment_epoch,
                previous_epoch=member.epoch,
                assigned=group.target(member_id),
            )
            draft.put(member)
        return member

    def _see_initialized(self, event: StateInitialized, now: float) -> Decision[ShareGroupRecord]:
        group = self.groups.get(event.group)
        if group is None:
            return Decision()
        progress = group.progress
        created = progress.initializing & frozenset(event.partitions)
        draft = ShareDraft(group, now, 0)
        draft.set_progress(
            replace(progress, initializing=progress.initializing - created, initialized=progress.initialized | created)
        )
        return draft.decision()

    def _alter_offsets(self, event: ShareOffsetsAlterRequested, now: float) -> Decision[ShareGroupRecord]:
        error = self.delete_error(event.group)
        if error == ErrorCode.NON_EMPTY_GROUP:
            return reply_only(event.ticket, error)
        draft = ShareDraft(self.groups.get(event.group) or ShareGroup(event.group), now, event.wall_ms)
        errors: dict[tuple[str, int], ErrorCode] = {}
        offsets: list[InitialOffset] = []
        for (name, index), start_offset in sorted(event.offsets.items()):
            topic = self.image.topics.get(name)
            if topic is None or not 0 <= index < topic.partitions:
                errors[name, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif topic.topic_id in draft.group.progress.deleting:
                errors[name, index] = ErrorCode.INVALID_REQUEST
            else:
                offsets.append(InitialOffset(topic.topic_id, index, start_offset))
        if offsets:
            progress = draft.group.progress
            fresh = frozenset((each.topic_id, each.partition) for each in offsets) - progress.initialized
            names = {
                **progress.names,
                **{self.image.topics[name].topic_id: name for name, _ in event.offsets.keys() - errors.keys()},
            }
            draft.set_progress(replace(progress, initializing=progress.initializing | fresh, names=names))
            draft.begin_epoch(self._digest(draft.group), "its offsets were altered")
        initialization = Initialization(event.group, draft.group.epoch, tuple(offsets))
        draft.reply(event.ticket, OffsetChanges(initialization, errors))
        return draft.decision()

    def _delete_offsets(self, event: ShareOffsetsDeleteRequested, now: float) -> Decision[ShareGroupRecord]:
        error = self.delete_error(event.group)
        if error:
            return reply_only(event.ticket, error)
        group = self.groups[event.group]
        ids = {name: topic_id for topic_id, name in group.progress.names.items()}
        known = {topic_id for topic_id, _ in group.progress.initialized | group.progress.initializing}
        known |= group.progress.deleting
        errors = {name: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION for name in event.topics if ids.get(name) not in known}
        return self._start_deletion(
            event.ticket, group, {ids[name] for name in event.topics if name not in errors}, errors, now
        )

    def _start_group_deletion(self, event: ShareGroupDeletionStarted, now: float) -> Decision[ShareGroupRecord]:
        error = self.delete_error(event.group)
        if error:
            return reply_only(event.ticket, error)
        group = self.groups[event.group]
        everything = {topic_id for topic_id, _ in group.progress.initialized | group.progress.initializing}
        return self._start_deletion(event.ticket, group, everything | group.progress.deleting, {}, now)

    def _start_deletion(
        self, ticket: int, group: ShareGroup, topic_ids: Collection[UUID], errors: Mapping[str, ErrorCode], now: float
    ) -> Decision[ShareGroupRecord]:
        """Move topics to the deleting ones, and reply with the partitions that may have a state.

        A topic that is deleting already has no list of partitions any more; those of the cluster are used.
        """
        progress = group.progress
        partitions = {each for each in progress.initialized | progress.initializing if each[0] in topic_ids}
        for topic_id in progress.deleting & set(topic_ids):
            topic = self.image.topics.get(progress.names[topic_id])
            if topic is not None and topic.topic_id == topic_id:
                partitions |= {(topic_id, index) for index in range(topic.partitions)}
        draft = ShareDraft(group, now, 0)
        deleting = progress.deleting | frozenset(topic_ids)
        draft.set_progress(replace(progress.without_topics(topic_ids), deleting=deleting))
        draft.reply(ticket, OffsetDeletions(group.group_id, tuple(sorted(partitions)), errors))
        return draft.decision()

    def _see_deleted(self, event: StateDeleted, now: float) -> Decision[ShareGroupRecord]:
        group = self.groups.get(event.group)
        if group is None:
            return Decision()
        draft = ShareDraft(group, now, 0)
        draft.set_progress(replace(group.progress, deleting=group.progress.deleting - frozenset(event.topic_ids)))
        return draft.decision()

    def _drop_topics(self, event: ShareTopicsDeleted, now: float) -> Decision[ShareGroupRecord]:
        records: list[ShareGroupRecord] = []
        for group in self.groups.values():
            draft = ShareDraft(group, now, 0)
            draft.set_progress(group.progress.without_topics(event.topic_ids))
            records += draft.records
        return Decision(tuple(records))

    def _resumed(self, draft: ShareDraft) -> Decision[ShareGroupRecord]:
        own = self.settings.get(draft.group.group_id, {})
        for member_id in draft.group.members:
            draft.begin_session(member_id, own.get("share_session_timeout_ms", self.config.session_timeout_ms))
        return draft.decision()


DECIDES: Mapping[type, Callable[[ShareGroups, Any, float], Decision[ShareGroupRecord]]] = {
    ShareHeartbeat: ShareGroups._heartbeat,
    StateInitialized: ShareGroups._see_initialized,
    ShareOffsetsAlterRequested: ShareGroups._alter_offsets,
    ShareOffsetsDeleteRequested: ShareGroups._delete_offsets,
    ShareGroupDeletionStarted: ShareGroups._start_group_deletion,
    StateDeleted: ShareGroups._see_deleted,
    ShareTopicsDeleted: ShareGroups._drop_topics,
}
"""The handler of each event."""


def check_request(request: ShareGroupHeartbeatRequest) -> None:
    """Raise RequestRejected if a heartbeat is malformed."""
    for is_wrong, text in FAULTS:
        if is_wrong(request):
            raise RequestRejected(ErrorCode.INVALID_REQUEST, text)


def known_member(group: ShareGroup, member_id: str) -> ShareMember:
    member = group.members.get(member_id)
    if member is None:
        raise RequestRejected(ErrorCode.UNKNOWN_MEMBER_ID, f"share group {group.group_id} has no member {member_id}")
    return member


def check_epoch(member: ShareMember, epoch: int) -> None:
    """Raise RequestRejected for an epoch other than the member's. One with the previous epoch may have lost a response."""
    if epoch not in (member.epoch, member.previous_epoch):
        raise RequestRejected(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"member epoch {epoch} is not {member.epoch}, which the coordinator knows: join again with epoch 0",
        )


def updated_member(member: ShareMember, event: ShareHeartbeat) -> ShareMember:
    """Return a member with the values of its heartbeat; omitted fields are unchanged."""
    request = event.request
    names = request.subscribed_topic_names
    return replace(
        member,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        topics=member.topics if names is None else frozenset(names),
        client_id=event.client_id,
        client_host=event.client_host,
    )


def metadata_of(member: ShareMember) -> kept.ShareGroupMemberMetadataValue:
    return kept.ShareGroupMemberMetadataValue(
        member.rack_id, member.client_id, member.client_host, sorted(member.topics)
    )


def current_of(member: ShareMember) -> kept.ShareGroupCurrentMemberAssignmentValue:
    assigned = [kept.TopicPartitions(topic_id, found) for topic_id, found in by_topic(member.assigned).items()]
    return kept.ShareGroupCurrentMemberAssignmentValue(member.epoch, member.previous_epoch, 0, assigned)


def assignment_of(assigned: Partitions) -> Assignment:
    return Assignment([TopicPartitions(topic_id, found) for topic_id, found in by_topic(assigned).items()])


def reply_only(ticket: int, message: Any) -> Decision[ShareGroupRecord]:
    return Decision(replies=(Reply(ticket, message),))
