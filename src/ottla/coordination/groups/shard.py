"""The state machine of one partition of `__consumer_offsets`: its groups and their committed offsets.

It decides and replays; time and random ids come with the events. Kafka has a GroupMetadataManager and an OffsetMetadataManager behind
GroupCoordinatorShard; here they are one machine, because a commit depends on the group and the end of a group on its offsets.

A group id belongs to a classic group, to a consumer group, to a share group, to a streams group, or to none if it only has offsets (a consumer that assigns
its partitions itself, or an administrator). Such a group is treated as an empty classic group; the first member to join determines its kind. An event
is passed to the kind that the group has at that time. JoinGroup may therefore be handled in `consumer/`: while a group is converted,
its classic members are members of the consumer group (`consumer/classic_members`). A share group has no offsets and is never converted. An empty
classic group becomes a streams group when a member of one joins, and an empty streams group a classic one; the offsets remain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ottla.coordination.groups.classic import decision as classic
from ottla.coordination.groups.classic.decision import ClassicGroupDecision, is_session_timeout_allowed
from ottla.coordination.groups.classic.group import ClassicGroup, ClassicGroupState
from ottla.coordination.groups.classic.records import ClassicGroupRecord, GroupInMemory, group_of
from ottla.coordination.groups.classic.responses import join_error_response, sync_error_response
from ottla.coordination.groups.committing import commit_records, pending_records
from ottla.coordination.groups.config import GroupConfig
from ottla.coordination.groups.consumer.committing import commit_error, fetch_error, transactional_commit_error
from ottla.coordination.groups.consumer.consumer_groups import ConsumerGroups, as_classic_group
from ottla.coordination.groups.consumer.events import (
    ConsumerHeartbeat,
    GroupConfigsChanged,
    GroupConfigsRecord,
    TopicImageRecord,
    TopicsChanged,
)
from ottla.coordination.groups.consumer.group import ConsumerGroup
from ottla.coordination.groups.consumer.records import ConsumerGroupRecord
from ottla.coordination.groups.deletion import (
    delete_error,
    expired_offsets,
    offset_delete_error,
    subscription_errors,
    tombstones,
)
from ottla.coordination.groups.events import (
    ClientDisconnected,
    ExpiryDue,
    GroupDeletionRequested,
    HeartbeatReceived,
    JoinRequested,
    LeaveRequested,
    Loaded,
    OffsetDeletionRequested,
    OffsetsCommitted,
    SyncRequested,
    TimerExpired,
    TopicsDeleted,
    TransactionalOffsetsCommitted,
)
from ottla.coordination.groups.records import Record
from ottla.coordination.groups.share.events import (
    ShareGroupDeletionStarted,
    ShareGroupEvent,
    ShareHeartbeat,
    ShareOffsetsAlterRequested,
    ShareOffsetsDeleteRequested,
    ShareTopicsDeleted,
    StateDeleted,
    StateInitialized,
)
from ottla.coordination.groups.share.records import ShareGroupRecord
from ottla.coordination.groups.share.share_groups import ShareGroups
from ottla.coordination.groups.streams.events import DescriptionPushed, HeartbeatResult, StreamsHeartbeat
from ottla.coordination.groups.streams.group import StreamsGroup, StreamsGroupInMemory
from ottla.coordination.groups.streams.group import as_classic_group as streams_as_classic_group
from ottla.coordination.groups.streams.records import StreamsGroupRecord
from ottla.coordination.groups.streams.streams_groups import StreamsGroups
from ottla.coordination.machine import Alarm, Decision, Reply, merge_decisions
from ottla.coordination.offsets.offsets import Offsets
from ottla.coordination.offsets.pending import PendingOffsets, PendingRecord, TransactionEnded
from ottla.coordination.offsets.records import OffsetRecord
from ottla.errors import ErrorCode
from ottla.model import TopicPartition
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from ottla.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatResponse
from ottla.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse

Event = (
    JoinRequested
    | SyncRequested
    | HeartbeatReceived
    | LeaveRequested
    | ClientDisconnected
    | TimerExpired
    | Loaded
    | OffsetsCommitted
    | TransactionalOffsetsCommitted
    | OffsetDeletionRequested
    | TopicsDeleted
    | GroupDeletionRequested
    | ExpiryDue
    | ConsumerHeartbeat
    | TopicsChanged
    | GroupConfigsChanged
    | ShareGroupEvent
    | StreamsHeartbeat
    | DescriptionPushed
)
SESSION_STATES = (ClassicGroupState.STABLE, ClassicGroupState.PREPARING_REBALANCE)
"""States in which a commit restarts the member's session, like a heartbeat."""


class Shard:
    """The groups of a partition. A group without members needs no record: its offsets are enough."""

    def __init__(self, config: GroupConfig) -> None:
        self.config = config
        self.groups: dict[str, ClassicGroup] = {}
        """Classic groups; no group id is also in `consumers`."""
        self.consumers = ConsumerGroups(config)
        self.shares = ShareGroups(config.share)
        """Share groups; no group id is also in `groups` or `consumers`."""
        self.streams = StreamsGroups(config.streams)
        """Streams groups; no group id is also in one of the others."""
        self.offsets = Offsets()
        self.pending = PendingOffsets()

    def find(self, group_id: str) -> ClassicGroup | ConsumerGroup | StreamsGroup | None:
        """Return the group, or None if it does not exist. Share groups have no offsets and are not looked up."""
        return self.streams.groups.get(group_id) or self.consumers.groups.get(group_id) or self.classic(group_id)

    def classic(self, group_id: str) -> ClassicGroup | None:
        """Return the classic group; a group that only has offsets is an empty classic group."""
        group = self.groups.get(group_id)
        is_other = group_id in self.consumers.groups or group_id in self.streams.groups
        is_kept = group_id in self.offsets.groups and not is_other
        return ClassicGroup(group_id) if group is None and is_kept else group

    def reader(self, group_id: str) -> ClassicGroup | None:
        """Return a group of any kind in the form that is needed to expire and delete offsets."""
        streams = self.streams.groups.get(group_id)
        if streams is not None:
            return streams_as_classic_group(streams)
        consumers = self.consumers.groups.get(group_id)
        return self.classic(group_id) if consumers is None else as_classic_group(consumers)

    def all(self) -> Iterator[ClassicGroup | ConsumerGroup | StreamsGroup]:
        yield from self.groups.values()
        yield from self.consumers.groups.values()
        yield from self.streams.groups.values()
        known = self.groups.keys() | self.consumers.groups.keys() | self.streams.groups.keys()
        yield from (ClassicGroup(group_id) for group_id in self.offsets.groups if group_id not in known)

    def fetch_error(self, group_id: str, member_id: str | None, epoch: int) -> int:
        """Return the error for an OffsetFetch that names a member and its epoch (KIP-848)."""
        if group_id in self.streams.groups:
            return self.streams.fetch_error(group_id, member_id, epoch)
        group = self.consumers.groups.get(group_id)
        return ErrorCode.NONE if group is None else fetch_error(group, member_id, epoch)

    def decide(self, event: Event, now: float) -> Decision[Record]:
        return DECIDES[type(event)](self, event, now)

    def replay(self, record: Record) -> None:
        # Ordered by frequency.
        if isinstance(record, OffsetRecord):
            self.offsets.replay(record)
            if self.pending:
                # Otherwise the marker of an older transaction would reset the group to an older offset.
                self.pending.drop_superseded(record)
            return
        if isinstance(record, PendingRecord):
            self.pending.add(record)
            return
        if isinstance(record, TransactionEnded):
            # On commit, the pending offsets count as if they were committed now; on abort there are none.
            for settled in self.pending.end(record):
                self.offsets.replay(settled)
            return
        if isinstance(record, ShareGroupRecord):
            self.shares.replay(record)
            return
        if isinstance(record, StreamsGroupRecord | StreamsGroupInMemory):
            self.streams.replay(record)
            self.offsets.remove_group(record.group_id)
            return
        if isinstance(record, ConsumerGroupRecord | TopicImageRecord | GroupConfigsRecord):
            self.consumers.replay(record)
            self.shares.image, self.shares.settings = self.consumers.image, self.consumers.settings
            self.streams.image, self.streams.settings = self.consumers.image, self.consumers.settings
            if isinstance(record, ConsumerGroupRecord):
                self.offsets.remove_group(record.group_id)
            return
        self._replay_classic(record)

    def _replay_classic(self, record: ClassicGroupRecord | GroupInMemory) -> None:
        group = self._group_in(record)
        if group is None:
            self.offsets.remove_group(record.group.group_id if isinstance(record, GroupInMemory) else record.key.group)
        if group is None or group.is_blank:
            self.groups.pop(record.group.group_id if isinstance(record, GroupInMemory) else record.key.group, None)
        else:
            self.groups[group.group_id] = group

    def check(self) -> None:
        self.consumers.check()
        self.shares.check()
        self.streams.check()
        assert self.groups.keys().isdisjoint(self.consumers.groups)
        assert self.shares.groups.keys().isdisjoint(self.groups.keys() | self.consumers.groups.keys())
        others = self.groups.keys() | self.consumers.groups.keys() | self.shares.groups.keys()
        assert self.streams.groups.keys().isdisjoint(others)
        for name, group in self.groups.items():
            assert group.group_id == name
            assert not group.is_blank
            group.check()

    def _group_in(self, record: ClassicGroupRecord | GroupInMemory) -> ClassicGroup | None:
        if isinstance(record, GroupInMemory):
            return record.group
        return None if record.value is None else group_of(record)

    def _decision(self, group: ClassicGroup, now: float, wall_ms: int) -> ClassicGroupDecision:
        return ClassicGroupDecision(group, self.config, now, wall_ms)

    def _join(self, event: JoinRequested, now: float) -> Decision[Record]:
        request = event.request
        if request.group_id in self.shares.groups:
            error = join_error_response(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
            return reply_only(event.ticket, error)
        streams = self.streams.groups.get(request.group_id)
        if streams is not None:
            if streams.members:
                error = join_error_response(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
                return reply_only(event.ticket, error)
            tombstones = Decision(self.streams.tombstones(request.group_id))
            return merge_decisions([tombstones, self._join_classic(event, now)])
        consumers = self.consumers.groups.get(request.group_id)
        if consumers is not None:
            # An empty consumer group becomes a classic group without a conversion, because it has no members.
            if consumers.members:
                return self.consumers.join(event, now)
            return merge_decisions([Decision(self.consumers.tombstones(consumers)), self._join_classic(event, now)])
        return self._join_classic(event, now)

    def _join_classic(self, event: JoinRequested, now: float) -> Decision[Record]:
        request = event.request
        if not is_session_timeout_allowed(self.config, request):
            return reply_only(event.ticket, join_error_response(ErrorCode.INVALID_SESSION_TIMEOUT, request.member_id))
        group = self.classic(request.group_id)
        if group is None:
            # An unknown member id: the group was deleted, or the log was lost. The client drops the id and joins as a new member.
            if request.member_id:
                return reply_only(event.ticket, join_error_response(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
            group = ClassicGroup(request.group_id)
        decision = self._decision(group, now, event.wall_ms)
        decision.join(event)
        return decision.result()

    def _sync(self, event: SyncRequested, now: float) -> Decision[Record]:
        if event.request.group_id in self.consumers.groups:
            return self.consumers.sync(event, now)
        group = self.groups.get(event.request.group_id)
        if group is None:
            return reply_only(event.ticket, sync_error_response(ErrorCode.UNKNOWN_MEMBER_ID))
        decision = self._decision(group, now, event.wall_ms)
        decision.sync(event)
        return decision.result()

    def _heartbeat(self, event: HeartbeatReceived, now: float) -> Decision[Record]:
        if event.request.group_id in self.consumers.groups:
            return self.consumers.classic_heartbeat(event, now)
        group = self.groups.get(event.request.group_id)
        if group is None:
            return reply_only(event.ticket, ErrorCode.UNKNOWN_MEMBER_ID)
        decision = self._decision(group, now, 0)
        decision.heartbeat(event)
        return decision.result()

    def _leave(self, event: LeaveRequested, now: float) -> Decision[Record]:
        if event.request.group_id in self.consumers.groups:
            return self.consumers.leave(event, now)
        group = self.groups.get(event.request.group_id)
        if group is None:
            return reply_only(event.ticket, ErrorCode.UNKNOWN_MEMBER_ID)
        decision = self._decision(group, now, event.wall_ms)
        decision.leave(event)
        return decision.result()

    def _handle_disconnect(self, event: ClientDisconnected, now: float) -> Decision[Record]:
        group = self.groups.get(event.group)
        if group is None:
            return Decision()
        decision = self._decision(group, now, event.wall_ms)
        decision.handle_disconnect(event)
        return decision.result()

    def _handle_timer(self, event: TimerExpired, now: float) -> Decision[Record]:
        if event.name.group in self.consumers.groups:
            return self.consumers.handle_timer(event, now)
        if event.name.group in self.shares.groups:
            return self.shares.handle_timer(event, now)
        if event.name.group in self.streams.groups:
            return self.streams.handle_timer(event, now)
        group = self.groups.get(event.name.group)
        if group is None:
            return Decision()
        decision = self._decision(group, now, event.wall_ms)
        decision.handle_timer(event.name)
        return decision.result()

    def _loaded(self, event: Loaded, now: float) -> Decision[Record]:
        """Give every member a new session, because the time of its last heartbeat is unknown."""
        decisions = self.consumers.loaded(now, event.wall_ms) + self.shares.loaded(now, event.wall_ms)
        decisions += self.streams.loaded(now, event.wall_ms)
        for group in self.groups.values():
            decision = self._decision(group, now, event.wall_ms)
            for member in group.members.values():
                decision.restart_session(member)
            # The setting was lowered while the broker was down; the rebalance rejects the excess members.
            if len(group.members) > self.config.max_size:
                decision.prepare_rebalance(f"it has more members than group.max.size = {self.config.max_size}")
            decisions.append(decision.result())
        return merge_decisions(decisions)

    def _commit(self, event: OffsetsCommitted, now: float) -> Decision[Record]:
        if event.group in self.shares.groups:
            return reply_only(event.ticket, ErrorCode.GROUP_ID_NOT_FOUND)
        if event.group in self.streams.groups:
            error = self.streams.commit_error(event)
            return Decision(() if error else commit_records(event), (Reply(event.ticket, error),))
        consumers = self.consumers.groups.get(event.group)
        if consumers is not None:
            error = commit_error(consumers, self.consumers.image, event)
            return Decision(() if error else commit_records(event), (Reply(event.ticket, error),))
        group = self.classic(event.group)
        error = classic.commit_error(group, event)
        replies = (Reply(event.ticket, error),)
        if error:
            return Decision(replies=replies)
        alarms: tuple[Alarm, ...] = ()
        # Clients that commit more often than they send heartbeats stay in, as with Kafka.
        if group is not None and event.member_id in group.members and group.state in SESSION_STATES:
            decision = self._decision(group, now, event.wall_ms)
            decision.restart_session(group.members[event.member_id])
            alarms = decision.result().alarms
        return Decision(commit_records(event), replies, alarms)

    def _commit_in_transaction(self, event: TransactionalOffsetsCommitted, now: float) -> Decision[Record]:
        if event.group in self.shares.groups:
            return reply_only(event.ticket, ErrorCode.GROUP_ID_NOT_FOUND)
        consumers = self.consumers.groups.get(event.group)
        if event.group in self.streams.groups:
            error = self.streams.transactional_commit_error(event)
        elif consumers is None:
            error = classic.transactional_commit_error(self.classic(event.group), event)
        else:
            error = transactional_commit_error(consumers, self.consumers.image, event)
        return Decision(() if error else pending_records(event), (Reply(event.ticket, error),))

    def _delete_offsets(self, event: OffsetDeletionRequested, now: float) -> Decision[Record]:
        group = self.reader(event.group)
        error = offset_delete_error(group)
        if group is None or error:
            return reply_only(event.ticket, error)
        errors = subscription_errors(group, event.partitions)
        committed = self.offsets.of(event.group)
        pairs = zip(event.partitions, errors, strict=True)
        gone = dict.fromkeys(partition for partition, code in pairs if not code and partition in committed)
        return Decision(tuple(tombstones(event.group, gone)), (Reply(event.ticket, errors),))

    def _drop_offsets_of_topics(self, event: TopicsDeleted, now: float) -> Decision[Record]:
        records: list[Record] = []
        for group_id, committed in self.offsets.groups.items():
            records += tombstones(group_id, [each for each in committed if each.topic in event.topics])
        for group_id, partition in sorted(self.pending.of_topics(event.topics)):
            # Otherwise its transaction would commit the offset for a new topic of the same name.
            if partition not in self.offsets.of(group_id):
                records += tombstones(group_id, [partition])
        return Decision(tuple(records), (Reply(event.ticket, len(records)),))

    def _delete_groups(self, event: GroupDeletionRequested, now: float) -> Decision[Record]:
        records: dict[str, list[Record]] = {}
        errors: list[int] = []
        for group_id in event.groups:
            if group_id in self.shares.groups:
                errors.append(self.shares.delete_error(group_id))
                if not errors[-1]:
                    records[group_id] = [*self.shares.tombstones(group_id)]
                continue
            committed = self.offsets.of(group_id)
            error = delete_error(self.reader(group_id), committed)
            errors.append(error)
            if not error:
                records[group_id] = [*tombstones(group_id, committed), *self._tombstones_of(group_id)]
        return Decision(tuple(each for some in records.values() for each in some), (Reply(event.ticket, errors),))

    def _expire(self, event: ExpiryDue, now: float) -> Decision[Record]:
        records: list[Record] = []
        count = 0
        for group_id in [group.group_id for group in self.all()]:
            group = self.reader(group_id)
            assert group is not None
            gone, is_over = self._find_expired_offsets(group, event.wall_ms)
            count += len(gone)
            records += tombstones(group_id, gone)
            records += self._tombstones_of(group_id) if is_over else ()
        return Decision(tuple(records), (Reply(event.ticket, count),))

    def _tombstones_of(self, group_id: str) -> Sequence[Record]:
        """Return the records that delete a group, without its offsets."""
        if group_id in self.streams.groups:
            return self.streams.tombstones(group_id)
        group = self.consumers.groups.get(group_id)
        return (ClassicGroupRecord.tombstone(group_id),) if group is None else self.consumers.tombstones(group)

    def _consumer_heartbeat(self, event: ConsumerHeartbeat, now: float) -> Decision[Record]:
        group_id = event.request.group_id
        if group_id in self.shares.groups or group_id in self.streams.groups:
            kind = "share" if group_id in self.shares.groups else "streams"
            text = f"group {group_id} is a {kind} group"
            answer = ConsumerGroupHeartbeatResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=text)
            return reply_only(event.ticket, answer)
        return self.consumers.heartbeat(event, self.classic(event.request.group_id), now)

    def _share_heartbeat(self, event: ShareHeartbeat, now: float) -> Decision[Record]:
        group_id = event.request.group_id
        if self.find(group_id) is not None:
            text = f"group {group_id} is not a share group"
            answer = ShareGroupHeartbeatResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=text)
            return reply_only(event.ticket, answer)
        return self.shares.decide(event, now)

    def _store_description(self, event: DescriptionPushed, now: float) -> Decision[Record]:
        return self.streams.store_description(event, now)

    def _streams_heartbeat(self, event: StreamsHeartbeat, now: float) -> Decision[Record]:
        group_id = event.request.group_id
        classic_group = self.classic(group_id)
        is_empty_classic = classic_group is not None and classic_group.state is ClassicGroupState.EMPTY
        is_other = group_id in self.consumers.groups or group_id in self.shares.groups or classic_group is not None
        if is_other and not (is_empty_classic and event.request.member_epoch == 0):
            text = f"group {group_id} is not a streams group"
            answer = StreamsGroupHeartbeatResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=text)
            return reply_only(event.ticket, HeartbeatResult(answer))
        decision = self.streams.heartbeat(event, now)
        if group_id in self.groups and decision.records:
            # The empty classic group becomes a streams group, and its offsets remain.
            tombstone = ClassicGroupRecord.tombstone(group_id)
            return merge_decisions([Decision((tombstone,)), decision])
        return decision

    def _alter_share_offsets(self, event: ShareOffsetsAlterRequested, now: float) -> Decision[Record]:
        if self.find(event.group) is not None:
            return reply_only(event.ticket, ErrorCode.GROUP_ID_NOT_FOUND)
        return self.shares.decide(event, now)

    def _decide_share_group(self, event: ShareGroupEvent, now: float) -> Decision[Record]:
        return self.shares.decide(event, now)

    def _handle_topics_changed(self, event: TopicsChanged, now: float) -> Decision[Record]:
        return Decision((TopicImageRecord(event.image),))

    def _handle_configs_changed(self, event: GroupConfigsChanged, now: float) -> Decision[Record]:
        return Decision((GroupConfigsRecord(event.settings),))

    def _find_expired_offsets(self, group: ClassicGroup, wall_ms: int) -> tuple[dict[TopicPartition, Any], bool]:
        """Return the expired offsets of a group, and True if nothing of the group remains without them."""
        committed = self.offsets.of(group.group_id)
        gone = expired_offsets(group, committed, wall_ms, self.config.offsets_retention_ms)
        is_over = group.state is ClassicGroupState.EMPTY and not group.pending and len(gone) == len(committed)
        return {partition: committed[partition] for partition in gone}, is_over


DECIDES: Mapping[type, Callable[[Shard, Any, float], Decision[Record]]] = {
    JoinRequested: Shard._join,
    SyncRequested: Shard._sync,
    HeartbeatReceived: Shard._heartbeat,
    LeaveRequested: Shard._leave,
    ClientDisconnected: Shard._handle_disconnect,
    TimerExpired: Shard._handle_timer,
    Loaded: Shard._loaded,
    OffsetsCommitted: Shard._commit,
    TransactionalOffsetsCommitted: Shard._commit_in_transaction,
    OffsetDeletionRequested: Shard._delete_offsets,
    TopicsDeleted: Shard._drop_offsets_of_topics,
    GroupDeletionRequested: Shard._delete_groups,
    ExpiryDue: Shard._expire,
    ConsumerHeartbeat: Shard._consumer_heartbeat,
    TopicsChanged: Shard._handle_topics_changed,
    GroupConfigsChanged: Shard._handle_configs_changed,
    ShareHeartbeat: Shard._share_heartbeat,
    StreamsHeartbeat: Shard._streams_heartbeat,
    DescriptionPushed: Shard._store_description,
    StateInitialized: Shard._decide_share_group,
    ShareOffsetsAlterRequested: Shard._alter_share_offsets,
    ShareOffsetsDeleteRequested: Shard._decide_share_group,
    ShareGroupDeletionStarted: Shard._decide_share_group,
    StateDeleted: Shard._decide_share_group,
    ShareTopicsDeleted: Shard._decide_share_group,
}
"""The handler of each event."""


def reply_only(ticket: int, message: Any) -> Decision[Record]:
    """Return a decision that only replies."""
    return Decision(replies=(Reply(ticket, message),))
