"""The streams groups of one partition of `__consumer_offsets`: which member runs which tasks (KIP-1071).

    heartbeat ──► identify the member, compare its metadata           metadata → group epoch
              ──► compare the topology, configure its topics          topics   → group epoch, internal topics to create
              ──► compute the assignment, once for each epoch         assignor → target assignment
              ──► move the member a step towards its target           target   → member epoch, current tasks

It is the protocol of consumer groups (`consumer/`) with tasks instead of partitions. Differences: the first member defines the topology, which never
changes while the group exists; topics are those of the topology, not of the member; tasks have roles; the assignor is the broker's.

No task runs before all topics exist with the right numbers of partitions. Until then the members have empty assignments, and
each response has a status with the reason. The caller creates missing internal topics from `HeartbeatResult.missing`; the next
heartbeat finds them and starts an epoch.

The first assignment of an empty group is delayed (`group.streams.initial.rebalance.delay.ms`), so that an application that starts many threads is not
rebalanced for each. Later ones have at least `group.streams.assignment.interval.ms` between them. Members keep their tasks meanwhile.

Descriptions of topologies (KIP-1331) are requested and stored if the setting is on (`descriptions.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ottla.coordination.groups.config import StreamsGroupConfig
from ottla.coordination.groups.consumer.image import TopicImage
from ottla.coordination.groups.consumer.refusal import RequestRejected
from ottla.coordination.groups.events import OffsetsCommitted, TimerExpired, TimerName, TransactionalOffsetsCommitted
from ottla.coordination.groups.streams import records as kept
from ottla.coordination.groups.streams.descriptions import (
    MAX_DESCRIPTION_BYTES,
    MAX_TOTAL_BYTES,
    estimate_size,
    explain_size,
    find_description_fault,
)
from ottla.coordination.groups.streams.events import DescriptionPushed, HeartbeatResult, StreamsHeartbeat
from ottla.coordination.groups.streams.group import (
    NO_EPOCH,
    NO_OFFSETS,
    ReportedOffsets,
    StreamsGroup,
    StreamsGroupInMemory,
)
from ottla.coordination.groups.streams.member import (
    LEAVING,
    LEAVING_FOR_A_WHILE,
    NO_ROLES,
    MemberState,
    StreamsMember,
    Task,
    TaskEpochs,
    Tasks,
    by_subtopology,
    task_ids,
    tasks_in,
)
from ottla.coordination.groups.streams.notes import (
    DescriptionRejected,
    DescriptionStored,
    ShutdownRequested,
    StreamsEpochBegun,
    StreamsMemberGone,
    StreamsMemberJoined,
    StreamsMemberMoved,
    StreamsMemberPaused,
    StreamsTargetChanged,
)
from ottla.coordination.groups.streams.reconciling import Goal, advance_to_goal
from ottla.coordination.groups.streams.records import StreamsGroupRecord, StreamsGroupTopologyValue
from ottla.coordination.groups.streams.sticky_assignor import GroupSpec, MemberSpec, assign_sticky
from ottla.coordination.groups.streams.topology import (
    ConfiguredTopology,
    StatusCode,
    comparable,
    configure_topology,
    find_topology_fault,
    required_topics,
    stored_topology,
)
from ottla.coordination.machine import Alarm, Decision, Reply
from ottla.errors import ErrorCode
from ottla.protocol.messages.streams_group_heartbeat import (
    EndpointToPartitions,
    KeyValue,
    Status,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskOffset,
    TopicPartition,
)
from ottla.protocol.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateResponse,
)
from ottla.protocol.schema import Message

SESSION = "streams-session"
"""The timer of a member's session."""
REVOCATION = "streams-revocation"
"""The timer for a member to revoke tasks: its rebalance timeout."""
INITIAL_DELAY = "streams-initial-delay"
"""The timer of a group's first assignment."""
REASONS: Mapping[str, str] = {
    SESSION: "the member session expired",
    REVOCATION: "it did not revoke its tasks within its rebalance timeout",
}
"""The reason for which a member is removed, by the kind of timer that expired."""
STANDBYS, TAGS = "num.standby.replicas", "rack.aware.assignment.tags"
"""The names of the settings that are stored with an assignment, as in Kafka's records."""
COMMIT_EPOCHS_SINCE = 9
"""The first version of OffsetCommit with member epochs."""
TRANSACTIONAL_EPOCHS_SINCE = 6
"""The first version of TxnOffsetCommit with errors of member epochs (KIP-1319)."""
DESCRIPTIONS_SINCE = 1
"""The first version of the heartbeat that can request a description of the topology."""
TAGS_SINCE = 1
"""The first version of the heartbeat with the status MISSING_CLIENT_TAGS."""

FAULTS: Sequence[tuple[Callable[[StreamsGroupHeartbeatRequest], bool], str]] = (
    (lambda it: not it.member_id, "a member of a streams group creates its own id: the member id is empty"),
    (lambda it: not it.group_id, "the group id is empty"),
    (lambda it: it.instance_id == "", "the instance id is empty: omit it, or set a name"),
    (lambda it: it.rack_id == "", "the rack id is empty: omit it, or set a name"),
    (lambda it: it.member_epoch < LEAVING_FOR_A_WHILE, "a member epoch is -2 (temporarily leaving), -1 (leaving), 0 (joining) or above"),
    (lambda it: it.member_epoch == LEAVING_FOR_A_WHILE and it.instance_id is None, "only a member with an instance id can leave temporarily"),
    (lambda it: it.member_epoch == 0 and it.rebalance_timeout_ms == -1, "a member that joins sends its rebalance timeout"),
    (lambda it: it.member_epoch == 0 and any((it.active_tasks, it.standby_tasks, it.warmup_tasks)), "a member that joins has no tasks"),
    (lambda it: it.member_epoch == 0 and it.topology is None, "a member that joins sends its topology"),
    (lambda it: it.member_epoch != 0 and it.topology is not None, "a topology is sent only to join"),
    (
        lambda it: len({each is None for each in (it.active_tasks, it.standby_tasks, it.warmup_tasks)}) > 1,
        "the tasks of all roles are sent together",
    ),
)  # fmt: skip
"""The checks of a heartbeat, in order."""


class StreamsDraft:
    """The effect of one event on one group, while the decision is made. It applies the records to a copy."""

    def __init__(self, group: StreamsGroup, config: StreamsGroupConfig, now: float, wall_ms: int) -> None:
        self.group = group
        self.config = config
        self.now = now
        self.wall_ms = wall_ms
        self._is_copied = False
        self.records: list[StreamsGroupRecord | StreamsGroupInMemory] = []
        self._replies: list[Reply] = []
        self._alarms: dict[TimerName, Alarm] = {}
        self._notes: list[Any] = []

    def write(self, key: Message, value: Message | None) -> None:
        self._apply(StreamsGroupRecord(key, value))

    def remember(self, **changes: Any) -> None:
        """Change the volatile state of the group."""
        changed = replace(self.group.volatile, **changes)
        if changed != self.group.volatile:
            self._apply(StreamsGroupInMemory(self.group.group_id, changed))

    def put(self, member: StreamsMember) -> None:
        """Write a member: its metadata and its assignment, each if it has changed."""
        group_id, before = self.group.group_id, self.group.members.get(member.member_id)
        if before is None or metadata_of(before) != metadata_of(member):
            self.write(kept.StreamsGroupMemberMetadataKey(group_id, member.member_id), metadata_of(member))
        if current_of(self.group.members[member.member_id]) != current_of(member):
            self.write(kept.StreamsGroupCurrentMemberAssignmentKey(group_id, member.member_id), current_of(member))

    def remove(self, member_id: str) -> None:
        """Delete the records of a member. The current assignment first, because it needs its member."""
        group_id = self.group.group_id
        self.write(kept.StreamsGroupCurrentMemberAssignmentKey(group_id, member_id), None)
        self.write(kept.StreamsGroupTargetAssignmentMemberKey(group_id, member_id), None)
        self.write(kept.StreamsGroupMemberMetadataKey(group_id, member_id), None)
        self.cancel(SESSION, member_id)
        self.cancel(REVOCATION, member_id)

    def begin_epoch(self, reason: str, metadata_hash: int, validated_epoch: int, configs: Mapping[str, str]) -> None:
        group = self.group
        value = kept.StreamsGroupMetadataValue(
            group.epoch + 1,
            metadata_hash,
            validated_epoch,
            [kept.LastAssignmentConfig(name, configs[name]) for name in sorted(configs)],
            group.stored_description_epoch,
            group.failed_description_epoch,
        )
        self.write(kept.StreamsGroupMetadataKey(group.group_id), value)
        self._notes.append(StreamsEpochBegun(group.group_id, self.group.epoch, reason))

    def set_target(self, member_id: str, target: Tasks) -> None:
        if self.group.targets.get(member_id) != target:
            value = kept.StreamsGroupTargetAssignmentMemberValue(
                task_ids(target.active), task_ids(target.standby), task_ids(target.warmup)
            )
            self.write(kept.StreamsGroupTargetAssignmentMemberKey(self.group.group_id, member_id), value)

    def set_target_epoch(self) -> None:
        value = kept.StreamsGroupTargetAssignmentMetadataValue(self.group.epoch, self.wall_ms)
        self.write(kept.StreamsGroupTargetAssignmentMetadataKey(self.group.group_id), value)

    def remove_group(self) -> None:
        group_id = self.group.group_id
        for member_id in list(self.group.members):
            self.remove(member_id)
        self.write(kept.StreamsGroupTargetAssignmentMetadataKey(group_id), None)
        self.write(kept.StreamsGroupTopologyKey(group_id), None)
        self.write(kept.StreamsGroupMetadataKey(group_id), None)

    def schedule(self, kind: str, timeout_ms: int, member_id: str = "") -> None:
        name = TimerName(kind, self.group.group_id, member_id)
        self._alarms[name] = Alarm(name, self.now + timeout_ms / 1000)

    def cancel(self, kind: str, member_id: str = "") -> None:
        name = TimerName(kind, self.group.group_id, member_id)
        self._alarms[name] = Alarm(name, None)

    def reply(self, ticket: int, message: Any) -> None:
        self._replies.append(Reply(ticket, message))

    def note(self, note: Any) -> None:
        self._notes.append(note)

    def decision(self) -> Decision[Any]:
        return Decision(tuple(self.records), tuple(self._replies), tuple(self._alarms.values()), tuple(self._notes))

    def _apply(self, record: StreamsGroupRecord | StreamsGroupInMemory) -> None:
        # Copied at the first write, as most heartbeats write nothing.
        if not self._is_copied:
            self.group, self._is_copied = self.group.copy(), True
        self.records.append(record)
        self.group.apply(record)


class StreamsGroups:
    """Groups by id. `image` has the topics of the cluster, as they were seen last."""

    def __init__(self, config: StreamsGroupConfig | None = None) -> None:
        self.config = config or StreamsGroupConfig()
        self.image = TopicImage()
        """Replaced by the caller whenever the topics of the cluster have changed."""
        self.settings: Mapping[str, Mapping[str, Any]] = {}
        """The settings of groups with own configs, by group id; replaced whenever they have changed."""
        self.groups: dict[str, StreamsGroup] = {}
        self._configured: dict[str, tuple[TopicImage, StreamsGroupTopologyValue, ConfiguredTopology]] = {}
        """The last configured topology of each group and what it was computed from, because every heartbeat needs it."""

    def replay(self, record: StreamsGroupRecord | StreamsGroupInMemory) -> None:
        """Apply a record. A tombstone of an unknown group is ignored."""
        group_id = record.group_id
        if isinstance(record, StreamsGroupRecord) and self._is_end(record):
            self.groups.pop(group_id, None)
            self._configured.pop(group_id, None)
            return
        group = self.groups.get(group_id)
        if group is None:
            if isinstance(record, StreamsGroupInMemory) or record.value is None:
                return
            group = self.groups[group_id] = StreamsGroup(group_id)
        group.apply(record)

    def check(self) -> None:
        for name, group in self.groups.items():
            assert group.group_id == name
            group.check()

    def heartbeat(self, event: StreamsHeartbeat, now: float) -> Decision[Any]:
        request = event.request
        try:
            check_request(request)
            group = self._find_group(request)
            draft = self._draft(group, now, event.wall_ms)
            if request.member_epoch in (LEAVING, LEAVING_FOR_A_WHILE):
                self._leave(draft, event)
            else:
                self._join_or_stay(draft, event)
        except RequestRejected as refused:
            answer = StreamsGroupHeartbeatResponse(error_code=refused.code, error_message=str(refused))
            return Decision(replies=(Reply(event.ticket, HeartbeatResult(answer)),))
        return draft.decision()

    def store_description(self, event: DescriptionPushed, now: float) -> Decision[Any]:
        """Store the description that a member sends of the group's topology."""
        request = event.request
        try:
            draft = self._draft(self._described_group(event), now, 0)
        except RequestRejected as refused:
            answer = StreamsGroupTopologyDescriptionUpdateResponse(error_code=refused.code, error_message=str(refused))
            return Decision(replies=(Reply(event.ticket, answer),))
        group, epoch = draft.group, request.topology_epoch
        state, size_bytes = group.volatile.description, estimate_size(request.topology_description)
        others_bytes = sum(each.volatile.description.size_bytes for each in self.groups.values()) - state.size_bytes
        code, text = 0, ""
        if size_bytes > MAX_DESCRIPTION_BYTES:
            code, text = explain_size(size_bytes)
            draft.remember(description=state.refuse(epoch))
        elif others_bytes + size_bytes > MAX_TOTAL_BYTES:
            code = ErrorCode.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED
            text = f"the descriptions of other groups have {others_bytes} bytes: at most {MAX_TOTAL_BYTES} are stored"
            draft.remember(description=state.request(epoch, now))
        else:
            draft.remember(description=state.store(epoch, request.topology_description, size_bytes))
        draft.note(
            DescriptionRejected(group.group_id, request.member_id, text)
            if code
            else DescriptionStored(group.group_id, request.member_id, epoch)
        )
        answer = StreamsGroupTopologyDescriptionUpdateResponse(error_code=code, error_message=text or None)
        draft.reply(event.ticket, answer)
        return draft.decision()

    def _described_group(self, event: DescriptionPushed) -> StreamsGroup:
        """Return the group of a description. Raise RequestRejected if the member must not send it."""
        request = event.request
        if not self.config.stores_descriptions:
            text = "descriptions of topologies are not stored: set group.streams.topology.description.plugin.class"
            raise RequestRejected(ErrorCode.UNSUPPORTED_VERSION, text)
        if not request.group_id or not request.member_id:
            name = "group" if not request.group_id else "member"
            raise RequestRejected(ErrorCode.INVALID_REQUEST, f"the {name} id is empty")
        group = self.groups.get(request.group_id)
        if group is None:
            raise RequestRejected(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no streams group {request.group_id}")
        if request.member_id not in group.members:
            text = f"streams group {group.group_id} has no member {request.member_id}"
            raise RequestRejected(ErrorCode.UNKNOWN_MEMBER_ID, text)
        known = NO_EPOCH if group.topology is None else group.topology.epoch
        if request.topology_epoch != known:
            text = f"topology epoch {request.topology_epoch} is not {known}, that of the group"
            raise RequestRejected(ErrorCode.INVALID_REQUEST, text)
        fault = find_description_fault(request.topology_description)
        if fault is not None:
            raise RequestRejected(ErrorCode.INVALID_REQUEST, fault)
        return group

    def handle_timer(self, event: TimerExpired, now: float) -> Decision[Any]:
        """Remove a member whose session or rebalance timeout has expired, or compute the first assignment of a group."""
        group = self.groups.get(event.name.group)
        if group is None:
            return Decision()
        draft = self._draft(group, now, event.wall_ms)
        if event.name.kind == INITIAL_DELAY:
            draft.remember(is_delayed=False)
            if group.members:
                self._compute_assignment(draft)
        elif event.name.member in group.members:
            self._remove_member(draft, group.members[event.name.member], REASONS[event.name.kind])
        return draft.decision()

    def loaded(self, now: float, wall_ms: int) -> list[Decision[Any]]:
        """Give every member a new session, and time to revoke its tasks, after the groups were read from the log."""
        return [self._resumed(self._draft(group, now, wall_ms)) for group in self.groups.values()]

    def tombstones(self, group_id: str) -> tuple[Any, ...]:
        """Return the records that delete a group."""
        draft = self._draft(self.groups[group_id], 0.0, 0)
        draft.remove_group()
        return tuple(draft.records)

    def configured(self, group: StreamsGroup) -> ConfiguredTopology:
        """Return the topology of a group by the present topics of the cluster."""
        topology = group.topology
        assert topology is not None, "a group with members has a topology"
        cached = self._configured.get(group.group_id)
        if cached is None or cached[0] is not self.image or cached[1] is not topology:
            cached = self._configured[group.group_id] = self.image, topology, configure_topology(topology, self.image)
        return cached[2]

    def commit_error(self, event: OffsetsCommitted) -> int:
        """Return the error for OffsetCommit. A group without members accepts the commits of any client."""
        group = self.groups[event.group]
        if event.generation < 0 and not group.members:
            return ErrorCode.NONE
        member = group.members.get(event.member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if event.version < COMMIT_EPOCHS_SINCE:
            return ErrorCode.UNSUPPORTED_VERSION
        return epoch_error(group, member, event)

    def transactional_commit_error(self, event: TransactionalOffsetsCommitted) -> int:
        """Return the error for TxnOffsetCommit. Producers before KIP-447 claim no membership."""
        group = self.groups[event.group]
        if event.generation < 0 and (not group.members or (not event.member_id and event.instance_id is None)):
            return ErrorCode.NONE
        member = group.members.get(event.member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        error = epoch_error(group, member, event)
        return ErrorCode.ILLEGAL_GENERATION if error and event.version < TRANSACTIONAL_EPOCHS_SINCE else error

    def fetch_error(self, group_id: str, member_id: str | None, epoch: int) -> int:
        """Return the error for OffsetFetch. A client that claims no membership may fetch."""
        if not member_id and epoch < 0:
            return ErrorCode.NONE
        member = self.groups[group_id].members.get(member_id or "")
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if epoch == member.epoch else ErrorCode.STALE_MEMBER_EPOCH

    def _is_end(self, record: StreamsGroupRecord) -> bool:
        return isinstance(record.key, kept.StreamsGroupMetadataKey) and record.value is None

    def _draft(self, group: StreamsGroup, now: float, wall_ms: int) -> StreamsDraft:
        return StreamsDraft(group, self._config_of(group.group_id), now, wall_ms)

    def _config_of(self, group_id: str) -> StreamsGroupConfig:
        """Return the settings of a group: the broker's, overridden by the group's own configs."""
        own = self.settings.get(group_id, {})
        ours = {name.removeprefix("streams_"): value for name, value in own.items() if name.startswith("streams_")}
        return replace(self.config, **ours) if ours else self.config

    def _find_group(self, request: StreamsGroupHeartbeatRequest) -> StreamsGroup:
        group = self.groups.get(request.group_id)
        if group is not None:
            return group
        if request.member_epoch != 0:
            raise RequestRejected(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no streams group {request.group_id}")
        return StreamsGroup(request.group_id)

    def _leave(self, draft: StreamsDraft, event: StreamsHeartbeat) -> None:
        request = event.request
        member = find_member(draft.group, request.member_id, request.instance_id)
        self._note_shutdown(draft, event)
        if request.member_epoch == LEAVING_FOR_A_WHILE:
            assert member.instance_id is not None
            # The session continues. If the member has not returned when it expires, its tasks are assigned to others.
            draft.put(
                replace(
                    member,
                    epoch=LEAVING_FOR_A_WHILE,
                    state=MemberState.STABLE,
                    revoking=NO_ROLES,
                    epochs=dict.fromkeys(member.assigned.active, 0),
                )
            )
            draft.cancel(REVOCATION, member.member_id)
            draft.note(StreamsMemberPaused(draft.group.group_id, member.member_id, member.instance_id))
        else:
            self._remove_member(draft, member, "it has left")
        answer = StreamsGroupHeartbeatResponse(
            member_id=request.member_id, member_epoch=request.member_epoch, status=()
        )
        draft.reply(event.ticket, HeartbeatResult(answer))

    def _remove_member(self, draft: StreamsDraft, member: StreamsMember, why: str) -> None:
        draft.remove(member.member_id)
        group = draft.group
        draft.note(StreamsMemberGone(group.group_id, member.member_id, why))
        reason = f"member {member.member_id} is removed: {why}"
        draft.begin_epoch(reason, group.metadata_hash, group.validated_topology_epoch, group.assignment_configs)
        if not draft.group.members:
            draft.set_target_epoch()
            draft.remember(is_delayed=False)
            draft.cancel(INITIAL_DELAY)

    def _note_shutdown(self, draft: StreamsDraft, event: StreamsHeartbeat) -> None:
        if event.request.shutdown_application and not draft.group.volatile.shutdown_by:
            draft.remember(shutdown_by=event.request.member_id)
            draft.note(ShutdownRequested(draft.group.group_id, event.request.member_id))

    def _join_or_stay(self, draft: StreamsDraft, event: StreamsHeartbeat) -> None:
        request = event.request
        is_new_group = not draft.group.members
        before = self._identify(draft, request)
        updated = updated_member(before, event)
        is_changed = self._put_member(draft, before, updated)
        self._accept_topology(draft, request)
        configured = self.configured(draft.group)
        owned = owned_tasks(request)
        check_tasks(owned, configured)
        self._note_offsets(draft, request)
        reason = self._new_epoch_reason(draft, configured, is_changed=is_changed)
        if reason:
            group = draft.group
            validated = configured.epoch if configured.is_ready else NO_EPOCH
            draft.begin_epoch(reason, self._digest(group), validated, assignment_configs(draft.config))
            if is_new_group and draft.config.initial_rebalance_delay_ms > 0 and not group.volatile.is_delayed:
                draft.remember(is_delayed=True)
                draft.schedule(INITIAL_DELAY, draft.config.initial_rebalance_delay_ms)
        statuses = stale_statuses(draft.group, updated)
        delay = self._update_assignment(draft)
        after = self._reconcile(draft, request.member_id, owned)
        draft.schedule(SESSION, draft.config.session_timeout_ms, request.member_id)
        self._note_shutdown(draft, event)
        statuses += self._statuses(draft, configured, after, delay, event.version)
        response = self._response(draft, event, before, after, owned, statuses)
        draft.reply(event.ticket, HeartbeatResult(response, configured.missing))

    def _identify(self, draft: StreamsDraft, request: StreamsGroupHeartbeatRequest) -> StreamsMember:
        """Return the member as it was before the heartbeat. Raise RequestRejected if it must not send it."""
        group = draft.group
        if request.member_epoch != 0:
            member = find_member(group, request.member_id, request.instance_id)
            check_epoch(member, request)
            return member
        old = group.instance(request.instance_id)
        if old is None:
            known = group.members.get(request.member_id)
            if known is None and len(group.members) >= draft.config.max_size:
                raise RequestRejected(
                    ErrorCode.GROUP_MAX_SIZE_REACHED,
                    f"the group is full: it may have {draft.config.max_size} members (group.streams.max.size)",
                )
            if known is None:
                draft.note(StreamsMemberJoined(group.group_id, request.member_id, request.instance_id))
            return known or StreamsMember(request.member_id)
        if old.member_id == request.member_id:
            return old
        if old.epoch != LEAVING_FOR_A_WHILE:
            raise RequestRejected(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"instance id {request.instance_id} is in use by member {old.member_id}, which has not left",
            )
        # Removed and added, because the member id is the key of its records.
        target = group.target(old.member_id)
        member = replace(old, member_id=request.member_id, epoch=0, previous_epoch=0)
        draft.remove(old.member_id)
        draft.put(member)
        draft.set_target(member.member_id, target)
        draft.note(StreamsMemberJoined(group.group_id, member.member_id, member.instance_id))
        return member

    def _put_member(self, draft: StreamsDraft, before: StreamsMember, updated: StreamsMember) -> bool:
        """Write a member. Return True if the assignment depends on the change.

        A static member that returns with the same process does not cause a rebalance.
        """
        is_known = before.member_id in draft.group.members
        is_changed = not is_known or metadata_of(before) != metadata_of(updated)
        draft.put(updated)
        if not is_known or updated.instance_id is None:
            return is_changed
        relevant = [(each.topology_epoch, each.rack_id, each.tags, each.process_id) for each in (before, updated)]
        return relevant[0] != relevant[1]

    def _accept_topology(self, draft: StreamsDraft, request: StreamsGroupHeartbeatRequest) -> None:
        """Store the topology of the first member. Raise RequestRejected if another member has another topology."""
        if request.topology is None:
            return
        sent, known = stored_topology(request.topology), draft.group.topology
        if known is None:
            draft.write(kept.StreamsGroupTopologyKey(draft.group.group_id), sent)
        elif sent.epoch >= known.epoch and comparable(sent) != comparable(known):
            raise RequestRejected(
                ErrorCode.INVALID_REQUEST,
                f"the topology differs from that of group {draft.group.group_id}: "
                "stop the application and delete the group, or set another application.id",
            )

    def _new_epoch_reason(self, draft: StreamsDraft, configured: ConfiguredTopology, *, is_changed: bool) -> str:
        """Return the reason for which the target assignment is outdated; empty if it is not."""
        group = draft.group
        if is_changed:
            return "a member has joined or changed"
        if self._digest(group) != group.metadata_hash:
            return "its topics have changed"
        if (configured.epoch if configured.is_ready else NO_EPOCH) != group.validated_topology_epoch:
            return "its topics are complete" if configured.is_ready else "its topics are incomplete"
        if assignment_configs(draft.config) != group.assignment_configs:
            return "its settings have changed"
        return ""

    def _digest(self, group: StreamsGroup) -> int:
        assert group.topology is not None
        return self.image.digest(required_topics(group.topology))

    def _note_offsets(self, draft: StreamsDraft, request: StreamsGroupHeartbeatRequest) -> None:
        if request.task_offsets is None and request.task_end_offsets is None:
            return
        known = draft.group.volatile.reported.get(request.member_id, NO_OFFSETS)
        said = ReportedOffsets(
            known.offsets if request.task_offsets is None else offsets_in(request.task_offsets),
            known.end_offsets if request.task_end_offsets is None else offsets_in(request.task_end_offsets),
        )
        draft.remember(reported={**draft.group.volatile.reported, request.member_id: said})

    def _update_assignment(self, draft: StreamsDraft) -> str:
        """Compute the target assignment if the present one is for an earlier epoch. Return the reason for a delay, or nothing."""
        group = draft.group
        if group.volatile.is_delayed:
            return "the first assignment waits for more members (group.streams.initial.rebalance.delay.ms)"
        if group.epoch <= group.assignment_epoch:
            return ""
        waited_ms = draft.wall_ms - group.assignment_ms
        if group.assignment_ms and 0 <= waited_ms < draft.config.assignment_interval_ms:
            return "the last assignment is too recent (group.streams.assignment.interval.ms)"
        self._compute_assignment(draft)
        return ""

    def _compute_assignment(self, draft: StreamsDraft) -> None:
        group = draft.group
        configured = self.configured(group)
        if configured.is_ready:
            subtopologies = configured.subtopologies.values()
            members = {
                name: MemberSpec(
                    member.process_id,
                    group.target(name),
                    group.volatile.reported.get(name, NO_OFFSETS).offsets,
                    member.tags,
                )
                for name, member in sorted(group.members.items())
            }
            targets = assign_sticky(
                GroupSpec(
                    [task for each in subtopologies if each.is_stateful for task in tasks_of(each.subtopology_id, each.task_count)],
                    [task for each in subtopologies if not each.is_stateful for task in tasks_of(each.subtopology_id, each.task_count)],
                    members,
                    draft.config.num_standby_replicas,
                    draft.config.rack_aware_assignment_tags,
                )
            )  # fmt: skip
        else:
            targets = dict.fromkeys(group.members, NO_ROLES)
        for member_id, target in targets.items():
            draft.set_target(member_id, target)
        draft.set_target_epoch()
        draft.note(StreamsTargetChanged(group.group_id, draft.group.assignment_epoch, len(targets)))

    def _reconcile(self, draft: StreamsDraft, member_id: str, owned: Tasks | None) -> StreamsMember:
        """Move a member a step towards its target."""
        group = draft.group
        member = group.members[member_id]
        if member.is_reconciled_to(group.assignment_epoch):
            return member
        goal = Goal(group.assignment_epoch, group.target(member_id), group.members.values(), owned)
        moved = advance_to_goal(member, goal)
        if moved == member:
            return member
        draft.put(moved)
        sizes = len(moved.assigned.all), len(moved.revoking.all)
        draft.note(StreamsMemberMoved(group.group_id, member_id, moved.epoch, moved.state.name, *sizes))
        if moved.state is MemberState.UNREVOKED_TASKS:
            draft.schedule(REVOCATION, moved.rebalance_timeout_ms, member_id)
        else:
            draft.cancel(REVOCATION, member_id)
        return moved

    def _statuses(
        self, draft: StreamsDraft, configured: ConfiguredTopology, member: StreamsMember, delay: str, version: int
    ) -> list[Status]:
        statuses = [Status(StatusCode.ASSIGNMENT_DELAYED, delay)] if delay else []
        if configured.status is not None:
            statuses.append(Status(configured.status, configured.detail))
        if shutdown_by := draft.group.volatile.shutdown_by:
            text = f"member {shutdown_by} has requested to stop the application"
            statuses.append(Status(StatusCode.SHUTDOWN_APPLICATION, text))
        missing = [tag for tag in draft.config.rack_aware_assignment_tags if tag not in member.tags]
        if missing and version >= TAGS_SINCE:
            names = ", ".join(f"client.tag.{tag}" for tag in missing)
            statuses.append(Status(StatusCode.MISSING_CLIENT_TAGS, f"the application does not set {names}"))
        return statuses

    def _response(
        self,
        draft: StreamsDraft,
        event: StreamsHeartbeat,
        before: StreamsMember,
        after: StreamsMember,
        owned: Tasks | None,
        statuses: list[Status],
    ) -> StreamsGroupHeartbeatResponse:
        request, volatile = event.request, draft.group.volatile
        is_joining, has_moved = request.member_epoch == 0, before.assigned != after.assigned
        # A member with another epoch or other tasks did not receive the last response.
        has_lost_response = request.member_epoch != before.epoch or (owned is not None and owned != before.assigned)
        is_sent = is_joining or has_moved or has_lost_response
        if before.endpoint != after.endpoint or ((is_joining or has_moved) and after.endpoint is not None):
            draft.remember(endpoint_epoch=volatile.endpoint_epoch + 1)
        epoch = draft.group.volatile.endpoint_epoch
        by_endpoint = (
            self._by_endpoint(draft.group, self.configured(draft.group))
            if epoch != request.endpoint_information_epoch
            else None
        )
        return StreamsGroupHeartbeatResponse(
            member_id=after.member_id,
            member_epoch=after.epoch,
            heartbeat_interval_ms=draft.config.heartbeat_interval_ms,
            task_offset_interval_ms=draft.config.task_offset_interval_ms,
            acceptable_recovery_lag=draft.config.acceptable_recovery_lag,
            status=statuses,
            active_tasks=task_ids(after.assigned.active) if is_sent else None,
            standby_tasks=task_ids(after.assigned.standby) if is_sent else None,
            warmup_tasks=task_ids(after.assigned.warmup) if is_sent else None,
            endpoint_information_epoch=epoch,
            partitions_by_user_endpoint=by_endpoint,
            topology_description_required=self._request_description(draft, event, statuses),
        )

    def _request_description(self, draft: StreamsDraft, event: StreamsHeartbeat, statuses: Sequence[Status]) -> bool:
        """Return True if the member is to send the description of the topology. The next request is due later."""
        topology, state = draft.group.topology, draft.group.volatile.description
        is_stale = any(each.status_code == StatusCode.STALE_TOPOLOGY for each in statuses)
        if not draft.config.stores_descriptions or event.version < DESCRIPTIONS_SINCE or topology is None or is_stale:
            return False
        if not state.is_due(topology.epoch, draft.now):
            return False
        draft.remember(description=state.request(topology.epoch, draft.now))
        return True

    def _by_endpoint(self, group: StreamsGroup, configured: ConfiguredTopology) -> list[EndpointToPartitions]:
        """Return the partitions that each member with an endpoint can be queried for."""

        def partitions(tasks: Iterable[Task]) -> list[TopicPartition]:
            return [
                TopicPartition(name, found)
                for subtopology_id, indexes in by_subtopology(tasks).items()
                if (subtopology := configured.subtopologies.get(subtopology_id)) is not None
                for name in subtopology.read_topics
                if name in self.image.topics
                and (found := [index for index in indexes if index < self.image.topics[name].partitions])
            ]

        return [
            EndpointToPartitions(
                each.endpoint,
                partitions(each.assigned.active),
                partitions(each.assigned.standby | each.assigned.warmup),
            )
            for each in group.members.values()
            if each.endpoint is not None
        ]

    def _resumed(self, draft: StreamsDraft) -> Decision[Any]:
        for member in draft.group.members.values():
            draft.schedule(SESSION, draft.config.session_timeout_ms, member.member_id)
            if member.state is MemberState.UNREVOKED_TASKS:
                draft.schedule(REVOCATION, member.rebalance_timeout_ms, member.member_id)
        return draft.decision()


def check_request(request: StreamsGroupHeartbeatRequest) -> None:
    """Raise RequestRejected if a heartbeat is malformed."""
    for is_wrong, text in FAULTS:
        if is_wrong(request):
            raise RequestRejected(ErrorCode.INVALID_REQUEST, text)
    fault = None if request.topology is None else find_topology_fault(request.topology)
    if fault is not None:
        raise RequestRejected(*fault)


def find_member(group: StreamsGroup, member_id: str, instance_id: str | None) -> StreamsMember:
    """Return the member of a request that claims to be in the group."""
    if instance_id is None:
        member = group.members.get(member_id)
        if member is None:
            raise RequestRejected(
                ErrorCode.UNKNOWN_MEMBER_ID, f"streams group {group.group_id} has no member {member_id}"
            )
        return member
    member = group.instance(instance_id)
    if member is None:
        raise RequestRejected(ErrorCode.UNKNOWN_MEMBER_ID, f"no member has the instance id {instance_id}")
    if member.member_id != member_id:
        raise RequestRejected(
            ErrorCode.FENCED_INSTANCE_ID,
            f"instance id {instance_id} is in use by member {member.member_id}: member {member_id} is fenced",
        )
    return member


def check_epoch(member: StreamsMember, request: StreamsGroupHeartbeatRequest) -> None:
    """Raise RequestRejected for an epoch other than the member's. A member with the previous epoch may have lost a response."""
    if request.member_epoch == member.epoch:
        return
    owned = owned_tasks(request)
    has_lost_response = request.member_epoch == member.previous_epoch and (
        owned is not None and owned.without(member.assigned).is_empty
    )
    if not has_lost_response:
        raise RequestRejected(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"member epoch {request.member_epoch} is not {member.epoch}, which the coordinator knows: close all tasks and join again",
        )


def check_tasks(owned: Tasks | None, configured: ConfiguredTopology) -> None:
    """Raise RequestRejected if a member reports a task that the topology does not have."""
    if owned is None or not configured.is_ready:
        return
    for subtopology_id, partition in sorted(owned.all):
        found = configured.subtopologies.get(subtopology_id)
        if found is None or not 0 <= partition < found.task_count:
            text = f"task {subtopology_id}_{partition} is not a task of the group's topology"
            raise RequestRejected(ErrorCode.INVALID_REQUEST, text)


def updated_member(member: StreamsMember, event: StreamsHeartbeat) -> StreamsMember:
    """Return a member with the values of its heartbeat; omitted fields are unchanged. A member that joins has only what it sends."""
    request = event.request
    is_joining = request.member_epoch == 0
    timeout_ms = request.rebalance_timeout_ms
    endpoint = request.user_endpoint if is_joining or request.user_endpoint is not None else member.endpoint
    tags = request.client_tags
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        client_id=event.client_id,
        client_host=event.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        topology_epoch=member.topology_epoch if request.topology is None else request.topology.epoch,
        process_id=member.process_id if request.process_id is None else request.process_id,
        endpoint=endpoint,
        tags=member.tags if tags is None else {each.key: each.value for each in tags},
    )


def owned_tasks(request: StreamsGroupHeartbeatRequest) -> Tasks | None:
    """Return the tasks that a member reports; None if the heartbeat omits them."""
    if request.active_tasks is None:
        return None
    return Tasks(
        tasks_in(request.active_tasks), tasks_in(request.standby_tasks or ()), tasks_in(request.warmup_tasks or ())
    )


def offsets_in(offsets: Iterable[TaskOffset]) -> dict[Task, int]:
    return {(each.subtopology_id, each.partition): each.offset for each in offsets}


def tasks_of(subtopology_id: str, count: int) -> list[Task]:
    return [(subtopology_id, partition) for partition in range(count)]


def stale_statuses(group: StreamsGroup, member: StreamsMember) -> list[Status]:
    """Return the status of a member whose topology is older than that of the group."""
    assert group.topology is not None
    if member.topology_epoch >= group.topology.epoch:
        return []
    text = (
        f"topology epoch {member.topology_epoch} of the member is older than {group.topology.epoch}, that of the group"
    )
    return [Status(StatusCode.STALE_TOPOLOGY, text)]


def assignment_configs(config: StreamsGroupConfig) -> dict[str, str]:
    """Return the settings on which an assignment depends, as they are stored."""
    configs = {STANDBYS: str(config.num_standby_replicas)}
    if config.rack_aware_assignment_tags:
        configs[TAGS] = ",".join(config.rack_aware_assignment_tags)
    return configs


def epoch_error(
    group: StreamsGroup, member: StreamsMember, event: OffsetsCommitted | TransactionalOffsetsCommitted
) -> int:
    """Return the error for a commit in this epoch.

    A member may use its own epoch, or an earlier one for tasks that it has had since (KIP-1251).
    """
    epoch = event.generation
    if epoch == member.epoch:
        return ErrorCode.NONE
    if epoch > member.epoch:
        return ErrorCode.STALE_MEMBER_EPOCH
    for partition in event.offsets:
        subtopology_id = group.sources.get(partition.topic)
        since = None if subtopology_id is None else member.epochs.get((subtopology_id, partition.partition))
        if since is None or epoch < since:
            return ErrorCode.STALE_MEMBER_EPOCH
    return ErrorCode.NONE


def metadata_of(member: StreamsMember) -> kept.StreamsGroupMemberMetadataValue:
    """Return the metadata record of a member."""
    return kept.StreamsGroupMemberMetadataValue(
        member.instance_id,
        member.rack_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.topology_epoch,
        member.process_id,
        member.endpoint,
        [KeyValue(name, member.tags[name]) for name in sorted(member.tags)],
    )


def current_of(member: StreamsMember) -> kept.StreamsGroupCurrentMemberAssignmentValue:
    """Return the current-assignment record of a member."""
    return kept.StreamsGroupCurrentMemberAssignmentValue(
        member.epoch,
        member.previous_epoch,
        member.state,
        with_epochs(member.assigned.active, member.epochs),
        without_epochs(member.assigned.standby),
        without_epochs(member.assigned.warmup),
        with_epochs(member.revoking.active, member.epochs),
        without_epochs(member.revoking.standby),
        without_epochs(member.revoking.warmup),
    )


def with_epochs(tasks: Iterable[Task], epochs: TaskEpochs) -> list[kept.TaskIds]:
    return [
        kept.TaskIds(subtopology, partitions, [epochs[subtopology, each] for each in partitions])
        for subtopology, partitions in by_subtopology(tasks).items()
    ]


def without_epochs(tasks: Iterable[Task]) -> list[kept.TaskIds]:
    return [kept.TaskIds(subtopology, found, None) for subtopology, found in by_subtopology(tasks).items()]
