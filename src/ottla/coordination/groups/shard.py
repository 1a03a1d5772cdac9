"""The machine of one partition of `__consumer_offsets`: its groups and what they committed.

Decides and replays; draws no ids and reads no clock. What Kafka has in a GroupMetadataManager and an OffsetMetadataManager is
here in one: who may commit depends on the group, and when a group is over depends on its offsets.

A name belongs to a classic group, to a consumer group, or to neither, when it only has offsets (a consumer that assigns its
partitions itself, an administrator). The last is treated as an empty classic group, which is of either kind: whoever joins it first
says which it becomes. Events are handed to the kind that the name has now, so a JoinGroup may well go to `consumer/`: while
a group goes over from one protocol to the other its classic members are members there (`consumer/classic_members`).
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
from ottla.coordination.groups.consumer.consumer_groups import ConsumerGroups, stand_in
from ottla.coordination.groups.consumer.events import (
    ConsumerHeartbeat,
    ImageSeen,
    OwnSettingsSeen,
    SettingsSeen,
    TopicsSeen,
)
from ottla.coordination.groups.consumer.group import ConsumerGroup
from ottla.coordination.groups.consumer.records import ConsumerGroupRecord
from ottla.coordination.groups.deletion import (
    delete_error,
    expired,
    offset_delete_error,
    subscription_errors,
    tombstones,
)
from ottla.coordination.groups.events import (
    AlarmRang,
    CallerGone,
    ExpiryDue,
    GroupDeletionRequested,
    HeartbeatReceived,
    JoinRequested,
    LeaveRequested,
    Loaded,
    OffsetDeletionRequested,
    OffsetsCommitted,
    SyncRequested,
    TopicsDeleted,
    TransactionalOffsetsCommitted,
)
from ottla.coordination.groups.records import Record
from ottla.coordination.machine import Alarm, Decision, Reply, together
from ottla.coordination.offsets.offsets import Offsets
from ottla.coordination.offsets.pending import PendingOffsets, PendingRecord, TransactionEnded
from ottla.coordination.offsets.records import OffsetRecord
from ottla.errors import ErrorCode
from ottla.model import TopicPartition

Event = (
    JoinRequested
    | SyncRequested
    | HeartbeatReceived
    | LeaveRequested
    | CallerGone
    | AlarmRang
    | Loaded
    | OffsetsCommitted
    | TransactionalOffsetsCommitted
    | OffsetDeletionRequested
    | TopicsDeleted
    | GroupDeletionRequested
    | ExpiryDue
    | ConsumerHeartbeat
    | TopicsSeen
    | SettingsSeen
)
SESSION_STATES = (ClassicGroupState.STABLE, ClassicGroupState.PREPARING_REBALANCE)
"""In which a commit says, as a heartbeat does, that a member lives."""


class Shard:
    """The groups of a partition. A group without members needs no record: its offsets are enough."""

    def __init__(self, config: GroupConfig) -> None:
        self.config = config
        self.groups: dict[str, ClassicGroup] = {}
        """Classic ones; no name is in `consumers` too."""
        self.consumers = ConsumerGroups(config)
        self.offsets = Offsets()
        self.pending = PendingOffsets()

    def find(self, group_id: str) -> ClassicGroup | ConsumerGroup | None:
        """The group of that id, None where nobody knows it."""
        return self.consumers.groups.get(group_id) or self.classic(group_id)

    def classic(self, group_id: str) -> ClassicGroup | None:
        """The classic group of that id; one that only keeps offsets is of either kind."""
        group = self.groups.get(group_id)
        is_kept = group_id in self.offsets.groups and group_id not in self.consumers.groups
        return ClassicGroup(group_id) if group is None and is_kept else group

    def reader(self, group_id: str) -> ClassicGroup | None:
        """A group of either kind as far as keeping offsets goes."""
        consumers = self.consumers.groups.get(group_id)
        return self.classic(group_id) if consumers is None else stand_in(consumers)

    def all(self) -> Iterator[ClassicGroup | ConsumerGroup]:
        yield from self.groups.values()
        yield from self.consumers.groups.values()
        known = self.groups.keys() | self.consumers.groups.keys()
        yield from (ClassicGroup(group_id) for group_id in self.offsets.groups if group_id not in known)

    def fetch_error(self, group_id: str, member_id: str | None, epoch: int) -> int:
        """Why somebody who claims to be a member is not told what a group committed."""
        group = self.consumers.groups.get(group_id)
        return ErrorCode.NONE if group is None else fetch_error(group, member_id, epoch)

    def decide(self, event: Event, now: float) -> Decision[Record]:
        """What is to be written, answered and waited for."""
        return DECIDES[type(event)](self, event, now)

    def replay(self, record: Record) -> None:
        """Let a record become state."""
        # In the order of how often they come.
        if isinstance(record, OffsetRecord):
            self.offsets.replay(record)
            if self.pending:
                # Otherwise the marker of an old transaction would take a group back to where it was before.
                self.pending.overtaken(record)
            return
        if isinstance(record, PendingRecord):
            self.pending.add(record)
            return
        if isinstance(record, TransactionEnded):
            # Where the marker says commit, these count as if they had been committed now; otherwise there are none.
            for settled in self.pending.end(record):
                self.offsets.replay(settled)
            return
        if isinstance(record, ConsumerGroupRecord | ImageSeen | OwnSettingsSeen):
            self.consumers.replay(record)
            if isinstance(record, ConsumerGroupRecord):
                self.offsets.bury(record.group_id)
            return
        group = self._group_in(record)
        if group is None:
            self.offsets.bury(record.group.group_id if isinstance(record, GroupInMemory) else record.key.group)
        if group is None or group.is_blank:
            self.groups.pop(record.group.group_id if isinstance(record, GroupInMemory) else record.key.group, None)
        else:
            self.groups[group.group_id] = group

    def check(self) -> None:
        self.consumers.check()
        assert self.groups.keys().isdisjoint(self.consumers.groups)
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
        consumers = self.consumers.groups.get(request.group_id)
        if consumers is not None:
            # An empty consumer group may become a classic one without any conversion: there is nobody to bring along.
            if consumers.members:
                return self.consumers.join(event, now)
            return together([Decision(self.consumers.buried(consumers)), self._join_classic(event, now)])
        return self._join_classic(event, now)

    def _join_classic(self, event: JoinRequested, now: float) -> Decision[Record]:
        request = event.request
        if not is_session_timeout_allowed(self.config, request):
            return replied(event.ticket, join_error_response(ErrorCode.INVALID_SESSION_TIMEOUT, request.member_id))
        group = self.classic(request.group_id)
        if group is None:
            # An id that we have not given away: the group was deleted, or the log was lost. The client forgets the id
            # and comes as somebody new.
            if request.member_id:
                return replied(event.ticket, join_error_response(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
            group = ClassicGroup(request.group_id)
        decision = self._decision(group, now, event.wall_ms)
        decision.join(event)
        return decision.result()

    def _sync(self, event: SyncRequested, now: float) -> Decision[Record]:
        if event.request.group_id in self.consumers.groups:
            return self.consumers.sync(event, now)
        group = self.groups.get(event.request.group_id)
        if group is None:
            return replied(event.ticket, sync_error_response(ErrorCode.UNKNOWN_MEMBER_ID))
        decision = self._decision(group, now, event.wall_ms)
        decision.sync(event)
        return decision.result()

    def _beat(self, event: HeartbeatReceived, now: float) -> Decision[Record]:
        if event.request.group_id in self.consumers.groups:
            return self.consumers.beat(event, now)
        group = self.groups.get(event.request.group_id)
        if group is None:
            return replied(event.ticket, ErrorCode.UNKNOWN_MEMBER_ID)
        decision = self._decision(group, now, 0)
        decision.heartbeat(event)
        return decision.result()

    def _leave(self, event: LeaveRequested, now: float) -> Decision[Record]:
        if event.request.group_id in self.consumers.groups:
            return self.consumers.leave(event, now)
        group = self.groups.get(event.request.group_id)
        if group is None:
            return replied(event.ticket, ErrorCode.UNKNOWN_MEMBER_ID)
        decision = self._decision(group, now, event.wall_ms)
        decision.leave(event)
        return decision.result()

    def _caller_gone(self, event: CallerGone, now: float) -> Decision[Record]:
        group = self.groups.get(event.group)
        if group is None:
            return Decision()
        decision = self._decision(group, now, event.wall_ms)
        decision.handle_disconnect(event)
        return decision.result()

    def _ring(self, event: AlarmRang, now: float) -> Decision[Record]:
        if event.name.group in self.consumers.groups:
            return self.consumers.ring(event, now)
        group = self.groups.get(event.name.group)
        if group is None:
            return Decision()
        decision = self._decision(group, now, event.wall_ms)
        decision.handle_timer(event.name)
        return decision.result()

    def _loaded(self, event: Loaded, now: float) -> Decision[Record]:
        """Give everybody a session to come back, since nobody's last heartbeat is known any more."""
        decisions = self.consumers.loaded(now, event.wall_ms)
        for group in self.groups.values():
            decision = self._decision(group, now, event.wall_ms)
            for member in group.members.values():
                decision.restart_session(member)
            # The setting was lowered while the broker was down; the rebalance turns away who is too much.
            if len(group.members) > self.config.max_size:
                decision.prepare_rebalance(
                    f"it was read with more members than group.max.size = {self.config.max_size}"
                )
            decisions.append(decision.result())
        return together(decisions)

    def _commit(self, event: OffsetsCommitted, now: float) -> Decision[Record]:
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
        consumers = self.consumers.groups.get(event.group)
        if consumers is None:
            error = classic.transactional_commit_error(self.classic(event.group), event)
        else:
            error = transactional_commit_error(consumers, self.consumers.image, event)
        return Decision(() if error else pending_records(event), (Reply(event.ticket, error),))

    def _delete_offsets(self, event: OffsetDeletionRequested, now: float) -> Decision[Record]:
        group = self.reader(event.group)
        error = offset_delete_error(group)
        if group is None or error:
            return replied(event.ticket, error)
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
            # Or its transaction would commit it for a topic that is made anew with the name.
            if partition not in self.offsets.of(group_id):
                records += tombstones(group_id, [partition])
        return Decision(tuple(records), (Reply(event.ticket, len(records)),))

    def _delete_groups(self, event: GroupDeletionRequested, now: float) -> Decision[Record]:
        records: dict[str, list[Record]] = {}
        errors = []
        for group_id in event.groups:
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
            gone, is_over = self._outlived(group, event.wall_ms)
            count += len(gone)
            records += tombstones(group_id, gone)
            records += self._tombstones_of(group_id) if is_over else ()
        return Decision(tuple(records), (Reply(event.ticket, count),))

    def _tombstones_of(self, group_id: str) -> Sequence[Record]:
        """What takes away a group, its offsets apart."""
        group = self.consumers.groups.get(group_id)
        return (ClassicGroupRecord.tombstone(group_id),) if group is None else self.consumers.buried(group)

    def _consumer_heartbeat(self, event: ConsumerHeartbeat, now: float) -> Decision[Record]:
        return self.consumers.heartbeat(event, self.classic(event.request.group_id), now)

    def _see_topics(self, event: TopicsSeen, now: float) -> Decision[Record]:
        return Decision((ImageSeen(event.image),))

    def _see_settings(self, event: SettingsSeen, now: float) -> Decision[Record]:
        return Decision((OwnSettingsSeen(event.settings),))

    def _outlived(self, group: ClassicGroup, wall_ms: int) -> tuple[dict[TopicPartition, Any], bool]:
        """The offsets of a group that are too old, and whether nothing is left of the group without them."""
        committed = self.offsets.of(group.group_id)
        gone = expired(group, committed, wall_ms, self.config.offsets_retention_ms)
        is_over = group.state is ClassicGroupState.EMPTY and not group.pending and len(gone) == len(committed)
        return {partition: committed[partition] for partition in gone}, is_over


DECIDES: Mapping[type, Callable[[Shard, Any, float], Decision[Record]]] = {
    JoinRequested: Shard._join,
    SyncRequested: Shard._sync,
    HeartbeatReceived: Shard._beat,
    LeaveRequested: Shard._leave,
    CallerGone: Shard._caller_gone,
    AlarmRang: Shard._ring,
    Loaded: Shard._loaded,
    OffsetsCommitted: Shard._commit,
    TransactionalOffsetsCommitted: Shard._commit_in_transaction,
    OffsetDeletionRequested: Shard._delete_offsets,
    TopicsDeleted: Shard._drop_offsets_of_topics,
    GroupDeletionRequested: Shard._delete_groups,
    ExpiryDue: Shard._expire,
    ConsumerHeartbeat: Shard._consumer_heartbeat,
    TopicsSeen: Shard._see_topics,
    SettingsSeen: Shard._see_settings,
}
"""Who decides about which event."""


def replied(ticket: int, message: Any) -> Decision[Record]:
    """An answer, and nothing else."""
    return Decision(replies=(Reply(ticket, message),))
