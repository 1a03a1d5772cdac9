"""The classic group protocol: members join, a leader assigns, members sync (JoinGroup, SyncGroup, Heartbeat, LeaveGroup).

    EMPTY ──join──► PREPARING_REBALANCE ──all joined, or timeout──► COMPLETING_REBALANCE ──leader synced──► STABLE
      ▲                  ▲   ▲                                            │                                  │
      └── last left ─────┘   └──── a member joins, leaves, expires, or syncs too late ◄──────────────────────┘

**A rebalance** has two phases. In PREPARING_REBALANCE members learn from the error REBALANCE_IN_PROGRESS of their next heartbeat that they
have to join. The coordinator holds each JoinGroup until all known members have sent one, or until the largest rebalance
timeout of a member has passed. Then it removes the dynamic members that did not join; static members keep their place until
their session expires (KIP-345). A new generation starts: each JoinGroup is answered, the leader's with the list of members and their
subscriptions. In COMPLETING_REBALANCE the coordinator holds each SyncGroup until the leader's arrives with the assignment. The group is
written to the log and is STABLE. A member that does not send SyncGroup within the rebalance timeout is removed, and the
rebalance starts again.

**The first rebalance** of an empty group is delayed by `group.initial.rebalance.delay.ms`, and again by that time whenever a new member has
arrived in the meantime, up to the rebalance timeout in total (KIP-134). Otherwise a fleet of N consumers that starts together would
rebalance N times.

**Sessions.** A member that waits for a response cannot send heartbeats on that connection; it counts as alive while the connection is open.
A new member has no session before its first response, only the long timeout of `GroupConfig.new_member_join_timeout`.

A restart of the coordinator during a rebalance loses nothing that a member received: the log has the last stable generation, and the members
join again. Sources of the rules: KIP-62, KIP-134, KIP-345, KIP-394, KIP-429, KIP-559, KIP-731, KIP-814.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ottla.coordination.groups.classic.group import (
    CONSUMER,
    ClassicGroup,
    ClassicGroupState,
    ClassicMember,
    Protocols,
    as_named,
    assigned_partitions,
    format_members,
    format_reason,
    owned_partitions,
)
from ottla.coordination.groups.classic.notes import (
    Assigned,
    Emptied,
    InstanceReplaced,
    MemberFailed,
    MemberIdGiven,
    MemberLeft,
    MembersRemoved,
    Note,
    RebalanceStarted,
    Stabilized,
)
from ottla.coordination.groups.classic.records import ClassicGroupRecord, GroupInMemory
from ottla.coordination.groups.classic.responses import (
    join_error_response,
    join_response,
    sync_error_response,
    sync_response,
)
from ottla.coordination.groups.config import GroupConfig
from ottla.coordination.groups.events import (
    ClientDisconnected,
    HeartbeatReceived,
    JoinRequested,
    LeaveRequested,
    OffsetsCommitted,
    SyncRequested,
    TimerName,
    TransactionalOffsetsCommitted,
)
from ottla.coordination.machine import Alarm, Decision, Reply
from ottla.errors import ErrorCode
from ottla.protocol.messages.join_group import JoinGroupRequest
from ottla.protocol.messages.leave_group import MemberIdentity
from ottla.protocol.messages.sync_group import SyncGroupRequest

SESSION = "session"
"""The timer of a member's session, and of a member id that was assigned and not used to join yet."""
JOIN = "join"
"""The timer for the members' JoinGroup."""
SYNC = "sync"
"""The timer for the members' SyncGroup."""
MEMBER_ID_REQUIRED_VERSION = 4
"""The JoinGroup version from which on a new member gets its id before it joins (KIP-394)."""
SKIP_ASSIGNMENT_VERSION = 9
"""The JoinGroup version from which on a leader can be requested to keep the existing assignment (KIP-814)."""
GROUP_ID_NOT_FOUND_VERSION = 9
"""The OffsetCommit version from which on the error for an unknown group is GROUP_ID_NOT_FOUND."""
TRANSACTIONAL_GROUP_ID_NOT_FOUND_VERSION = 6
"""The same for TxnOffsetCommit (KIP-1319)."""
HEARTBEAT_ERRORS: Mapping[ClassicGroupState, int] = {
    ClassicGroupState.EMPTY: ErrorCode.UNKNOWN_MEMBER_ID,
    ClassicGroupState.PREPARING_REBALANCE: ErrorCode.REBALANCE_IN_PROGRESS,
    ClassicGroupState.COMPLETING_REBALANCE: ErrorCode.NONE,
    ClassicGroupState.STABLE: ErrorCode.NONE,
    ClassicGroupState.DEAD: ErrorCode.UNKNOWN_MEMBER_ID,
}
"""The response to a heartbeat of a member of the current generation."""


class ClassicGroupDecision:
    """The effect of one event on one group: its new state, the responses, the timers and the log records.

    Nothing is visible outside before the result is carried out.
    """

    def __init__(self, group: ClassicGroup, config: GroupConfig, now: float, wall_ms: int) -> None:
        self.group = group
        self._before = group
        self._config = config
        self._now = now
        self._wall_ms = wall_ms
        self._is_persisted = False
        self._replies: list[Reply] = []
        self._alarms: dict[TimerName, Alarm] = {}
        self._notes: list[Note] = []

    def result(self) -> Decision[ClassicGroupRecord | GroupInMemory]:
        records: list[ClassicGroupRecord | GroupInMemory] = (
            [ClassicGroupRecord.of(self.group)] if self._is_persisted else []
        )
        # Requests that are held are state as well, and state changes only by replay, even if nothing is written to the log.
        if self.group is not self._before or self._is_persisted:
            records.append(GroupInMemory(self.group))
        return Decision(tuple(records), tuple(self._replies), tuple(self._alarms.values()), tuple(self._notes))

    def persist(self) -> None:
        """Have the group written to the log as it is at the end of this decision."""
        self._is_persisted = True

    def restart_session(self, member: ClassicMember) -> None:
        self._start_timer(SESSION, member.session_timeout_ms / 1000, member.member_id)

    def _respond(self, ticket: int, message: Any) -> None:
        """Respond to the request with that ticket; ticket 0 means that there is none."""
        if ticket:
            self._replies.append(Reply(ticket, message))

    def _log_event(self, note: Note) -> None:
        self._notes.append(note)

    def _start_timer(self, kind: str, seconds: float, member: str = "") -> None:
        name = TimerName(kind, self.group.group_id, member)
        self._alarms[name] = Alarm(name, self._now + seconds)

    def _cancel_timer(self, kind: str, member: str = "") -> None:
        name = TimerName(kind, self.group.group_id, member)
        self._alarms[name] = Alarm(name, None)

    def _enter(self, state: ClassicGroupState, **fields: Any) -> None:
        """Change the group's state, and fields together with it."""
        self.group = self.group.with_state(state, self._wall_ms).changed(**fields)

    # --- JoinGroup -----------------------------------------------------------------------------------------------

    def join(self, event: JoinRequested) -> None:
        """Handle JoinGroup from a new or a known member."""
        request = event.request
        if error := self._join_error(request):
            self._respond(event.ticket, join_error_response(error, request.member_id))
            # A member without a place in the next generation must not stay: every rebalance would wait for it.
            if error is ErrorCode.GROUP_MAX_SIZE_REACHED:
                self._drop_member(request.member_id)
        elif request.member_id:
            self._join_known_member(event)
        elif (static := self.group.static_member(request.group_instance_id)) is not None:
            self._replace_static_member(event, static)
        elif request.group_instance_id is None and event.version >= MEMBER_ID_REQUIRED_VERSION:
            self._assign_member_id(event)
        else:
            self._add_member(event, event.new_member_id)

    def _join_error(self, request: JoinGroupRequest) -> ErrorCode:
        if self._is_full(request.member_id):
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        if not self.group.is_supporting(request.protocol_type, {protocol.name for protocol in request.protocols}):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.NONE

    def _is_full(self, member_id: str) -> bool:
        """Return True if the group has no place for this member. During a rebalance only members that joined take a place."""
        known, max_size = self.group.members.get(member_id), self._config.max_size
        if self.group.state is ClassicGroupState.PREPARING_REBALANCE:
            return self.group.joined_count >= max_size and not (known and known.has_joined)
        return len(self.group.members) >= max_size and known is None

    def _assign_member_id(self, event: JoinRequested) -> None:
        """Return a member id with MEMBER_ID_REQUIRED; the client repeats the request with it (KIP-394).

        Otherwise a client that lost the response would join as another member at each retry, and every rebalance would wait
        for the members that it left behind. The id is remembered for one session timeout.
        """
        self._log_event(MemberIdGiven(self.group.group_id, event.new_member_id, self.group.state))
        self.group = self.group.changed(pending=self.group.pending | {event.new_member_id})
        self._start_timer(SESSION, event.request.session_timeout_ms / 1000, event.new_member_id)
        self._respond(event.ticket, join_error_response(ErrorCode.MEMBER_ID_REQUIRED, event.new_member_id))

    def _join_known_member(self, event: JoinRequested) -> None:
        """Handle JoinGroup with a member id, which was just assigned or belongs to a member."""
        request = event.request
        # A static member is known by its instance id and gets no pending id.
        if request.member_id in self.group.pending and request.group_instance_id is None:
            self._add_member(event, request.member_id)
            return
        error = self.group.member_error(request.member_id, request.group_instance_id)
        if error:
            self._respond(event.ticket, join_error_response(error, request.member_id))
            return
        member = self.group.members[request.member_id]
        match self.group.state:
            case ClassicGroupState.PREPARING_REBALANCE:
                self._rejoin(event, member)
            case ClassicGroupState.COMPLETING_REBALANCE:
                self._rejoin_if_changed(event, member)
            case ClassicGroupState.STABLE:
                # The leader sees topics and partitions change; it asks for a new assignment by joining again.
                if member.member_id == self.group.leader:
                    self._rejoin(event, member)
                else:
                    self._rejoin_if_changed(event, member)
            case _:
                self._respond(event.ticket, join_error_response(ErrorCode.UNKNOWN_MEMBER_ID, member.member_id))

    def _rejoin_if_changed(self, event: JoinRequested, member: ClassicMember) -> None:
        """Answer a member that has not changed; it only missed the response. Rebalance for one that has changed."""
        if protocols_of(event.request) == member.protocols:
            self._respond(event.ticket, join_response(self.group, member))
            self.restart_session(member)
        else:
            self._rejoin(event, member)

    def _rejoin(self, event: JoinRequested, member: ClassicMember) -> None:
        # The client has given up the connection of its earlier request, but that request may hold back others behind it.
        if member.join_ticket:
            error = join_error_response(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id)
            self._respond(member.join_ticket, error)
        is_leader = self.group.state is ClassicGroupState.STABLE and member.member_id == self.group.leader
        name = f"the leader, {member.member_id}," if is_leader else member.member_id
        self.group = self.group.with_member(updated_member(member, event, member.member_id))
        self._rebalance(f"{name} joins again in {self.group.state}{format_reason(event.request.reason)}")

    def _add_member(self, event: JoinRequested, member_id: str) -> None:
        request, group = event.request, self.group
        member = ClassicMember(
            member_id,
            request.group_instance_id,
            event.client_id,
            event.client_host,
            rebalance_timeout_ms(request),
            request.session_timeout_ms,
            protocols_of(request),
            join_ticket=event.ticket,
            is_new=True,
        )
        # The first member of an empty group determines the kind of group.
        if not group.members:
            group = group.changed(protocol_type=request.protocol_type)
        self.group = group.with_member(member).changed(has_new_member=True)
        self._start_timer(SESSION, self._config.new_member_join_timeout, member_id)
        name = as_named(member_id, request.group_instance_id)
        self._rebalance(f"{name} joins{format_reason(request.reason)}")

    def _drop_member(self, member_id: str) -> None:
        """Remove a member that waits for no response."""
        self._cancel_timer(SESSION, member_id)
        self.group = self.group.without(member_id)
        self._complete_join_if_all_joined()

    # --- Static members that return (KIP-345) --------------------------------------------------------------------

    def _replace_static_member(self, event: JoinRequested, old: ClassicMember) -> None:
        """Give a static member its old place under a new member id, and fence the process with the old id.

        Either two processes use one instance id, or a process was restarted before its end was noticed: the newer one wins.
        Nothing is rebalanced if the group is stable and the assignment is still what the members want.
        """
        new = updated_member(old, event, event.new_member_id)
        self._respond(old.join_ticket, join_error_response(ErrorCode.FENCED_INSTANCE_ID, old.member_id))
        self._respond(old.sync_ticket, sync_error_response(ErrorCode.FENCED_INSTANCE_ID))
        before = self.group
        assert new.instance_id is not None
        self._log_event(InstanceReplaced(before.group_id, new.instance_id, old.member_id, new.member_id))
        self._cancel_timer(SESSION, old.member_id)
        self.group = before.replace_static_member(old.member_id, new)
        self.restart_session(new)
        is_stable = before.state is ClassicGroupState.STABLE
        if is_stable and keeps_assignment(before, self.group) and not has_to_revoke(before, old):
            self._keep_assignment(event, new, before.leader)
        else:
            self._rebalance(
                f"{as_named(new.member_id, new.instance_id)} joins again{format_reason(event.request.reason)}"
            )

    def _keep_assignment(self, event: JoinRequested, member: ClassicMember, leader_before: str | None) -> None:
        """Answer a returned member in the current generation.

        A leader that does not understand `skip_assignment` would assign again. It recognizes itself by the leader's id,
        and is therefore given the id that it had before.
        """
        answered = replace(member, join_ticket=0, is_new=False)
        self.group = self.group.with_member(answered)
        self.persist()
        is_leader = self.group.leader == member.member_id
        response = join_response(self.group, answered, skip_assignment=is_leader)
        if event.version < SKIP_ASSIGNMENT_VERSION:
            response.skip_assignment, response.members, response.leader = False, (), leader_before or ""
        self._respond(event.ticket, response)

    # --- Rebalance -----------------------------------------------------------------------------------------------

    def _rebalance(self, reason: str) -> None:
        """Start a rebalance, or continue the one in progress."""
        if self.group.state is ClassicGroupState.PREPARING_REBALANCE:
            self._complete_join_if_all_joined()
        else:
            self.prepare_rebalance(reason)

    def prepare_rebalance(self, reason: str) -> None:
        """Enter PREPARING_REBALANCE: reject pending SyncGroup requests and wait for every member to join."""
        was_empty = self.group.state is ClassicGroupState.EMPTY
        if self.group.state is ClassicGroupState.COMPLETING_REBALANCE:
            self._reject_pending_syncs()
        self._cancel_timer(SYNC)
        self._log_event(RebalanceStarted(self.group.group_id, self.group.generation, reason))
        self._enter(ClassicGroupState.PREPARING_REBALANCE, pending_sync=frozenset())
        if was_empty:
            self._start_initial_delay()
        else:
            self._start_timer(JOIN, self.group.rebalance_timeout)
            self._complete_join_if_all_joined()

    def _start_initial_delay(self) -> None:
        delay = self._config.initial_rebalance_delay
        delay_left = max(self.group.rebalance_timeout - delay, 0.0)
        self.group = self.group.changed(initial_delay_left=delay_left, has_new_member=False)
        if delay:
            self._start_timer(JOIN, delay)
        else:
            self._complete_join()

    def _reject_pending_syncs(self) -> None:
        members: dict[str, ClassicMember] = {}
        for name, member in self.group.members.items():
            if member.sync_ticket:
                self._respond(member.sync_ticket, sync_error_response(ErrorCode.REBALANCE_IN_PROGRESS))
                self.restart_session(member)
            members[name] = replace(member, sync_ticket=0)
        self.group = self.group.changed(members=members)

    def _complete_join_if_all_joined(self) -> None:
        """Complete the join if no member is missing. During the initial delay others may be about to arrive."""
        if self.group.initial_delay_left is None and self.group.is_join_complete:
            self._complete_join()

    def _handle_join_timeout(self) -> None:
        """Complete the join, or extend the initial delay as long as new members keep arriving."""
        group, delay = self.group, self._config.initial_rebalance_delay
        if group.state is not ClassicGroupState.PREPARING_REBALANCE:
            return
        if group.initial_delay_left and group.has_new_member:
            extension = min(delay, group.initial_delay_left)
            delay_left = max(group.initial_delay_left - delay, 0.0)
            self.group = group.changed(initial_delay_left=delay_left, has_new_member=False)
            self._start_timer(JOIN, extension)
        else:
            self._complete_join()

    def _complete_join(self) -> None:
        """Start the next generation with the members that joined."""
        self._cancel_timer(JOIN)
        self._remove_members_that_did_not_join()
        if not self.group.members:
            self._enter_empty_generation()
        elif (leader := self._elect_leader()) is not None:
            self._start_generation(leader)
        else:
            # Only static members are left and none has joined. They are removed when their sessions expire.
            self._start_timer(JOIN, self.group.rebalance_timeout)

    def _remove_members_that_did_not_join(self) -> None:
        """Remove dynamic members; a static member is probably being restarted and keeps its place (KIP-345)."""
        missing = [
            member.member_id
            for member in self.group.members.values()
            if not member.has_joined and member.instance_id is None
        ]
        if missing:
            self.group = self.group.without(*missing)
            for member_id in missing:
                self._cancel_timer(SESSION, member_id)
            self._log_event(MembersRemoved(self.group.group_id, tuple(missing), "joined"))

    def _elect_leader(self) -> str | None:
        """Return the current leader if it joined, else the first member that did.

        Keeping the leader preserves the memory of sticky assignors, which is in the leader's process.
        """
        joined = [name for name, member in self.group.members.items() if member.has_joined]
        return self.group.leader if self.group.leader in joined else next(iter(joined), None)

    def _enter_empty_generation(self) -> None:
        generation = self.group.generation + 1
        self.group = self.group.changed(generation=generation, protocol_name=None, initial_delay_left=None)
        self._enter(ClassicGroupState.EMPTY, topics=frozenset() if self.group.protocol_type else None)
        self.persist()
        self._log_event(Emptied(self.group.group_id, generation))

    def _start_generation(self, leader: str) -> None:
        """Answer every JoinGroup and wait for the leader's SyncGroup."""
        group = self.group.changed(leader=leader)
        # The protocol is elected in each generation: a fleet moves to another assignor by listing both during a rolling restart.
        protocol = group.elected_protocol()
        self.group = group
        self._enter(
            ClassicGroupState.COMPLETING_REBALANCE,
            generation=group.generation + 1,
            protocol_name=protocol,
            topics=group.subscribed_topics(protocol),
            pending_sync=frozenset(group.members),
            initial_delay_left=None,
        )
        self._log_event(Stabilized(group.group_id, self.group.generation, len(group.members)))
        for member in self.group.members.values():
            self._respond(member.join_ticket, join_response(self.group, member))
            self.restart_session(member)
        answered = {name: replace(member, join_ticket=0, is_new=False) for name, member in self.group.members.items()}
        self.group = self.group.changed(members=answered)
        # Detects a member that sends heartbeats and never sends SyncGroup; the session timeout cannot.
        self._start_timer(SYNC, self.group.rebalance_timeout)

    # --- SyncGroup -----------------------------------------------------------------------------------------------

    def sync(self, event: SyncRequested) -> None:
        """Handle SyncGroup: hold it until the leader's arrives, or return the assignment."""
        error = self._sync_error(event.request)
        if error:
            self._respond(event.ticket, sync_error_response(error))
            return
        member = self.group.members[event.request.member_id]
        match self.group.state:
            case ClassicGroupState.PREPARING_REBALANCE:
                self._respond(event.ticket, sync_error_response(ErrorCode.REBALANCE_IN_PROGRESS))
            case ClassicGroupState.COMPLETING_REBALANCE:
                self._hold_sync(event, member)
            case ClassicGroupState.STABLE:
                self._return_assignment(event, member)
            case _:
                self._respond(event.ticket, sync_error_response(ErrorCode.UNKNOWN_MEMBER_ID))

    def _sync_error(self, request: SyncGroupRequest) -> int:
        group = self.group
        error = group.generation_error(request.generation_id, request.member_id, request.group_instance_id)
        if error:
            return error
        # Clients send the protocol that they believe to be elected since KIP-559.
        if request.protocol_type not in (None, group.protocol_type):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        has_protocol = group.state in (ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.STABLE)
        if has_protocol and request.protocol_name not in (None, group.protocol_name):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.NONE

    def _hold_sync(self, event: SyncRequested, member: ClassicMember) -> None:
        if member.sync_ticket:  # sent on a connection that the client has given up
            self._respond(member.sync_ticket, sync_error_response(ErrorCode.REBALANCE_IN_PROGRESS))
        self.group = self.group.with_member(replace(member, sync_ticket=event.ticket))
        self._record_sync(member)
        if member.member_id == self.group.leader:
            self._assign(event)

    def _assign(self, event: SyncRequested) -> None:
        """Store the leader's assignment, answer every SyncGroup that is held, and enter STABLE.

        The leader may name members that have left, which are ignored, and omit members, which get an empty assignment.
        """
        assignments = {each.member_id: bytes(each.assignment) for each in event.request.assignments}
        members: dict[str, ClassicMember] = {}
        for name, waiting in self.group.members.items():
            member = replace(waiting, assignment=assignments.get(name, b""), sync_ticket=0)
            members[name] = member
            if waiting.sync_ticket:
                self._respond(waiting.sync_ticket, sync_response(self.group, member))
                self.restart_session(member)
        self.group = self.group.changed(members=members)
        self._enter(ClassicGroupState.STABLE)
        self.persist()
        static_count = sum(1 for member in members.values() if member.instance_id is not None)
        leader = event.request.member_id
        self._log_event(Assigned(self.group.group_id, self.group.generation, leader, len(members), static_count))

    def _return_assignment(self, event: SyncRequested, member: ClassicMember) -> None:
        self._respond(event.ticket, sync_response(self.group, member))
        self.restart_session(member)
        # A member may sync again after a lost response; it is counted once.
        if member.member_id in self.group.pending_sync:
            self._record_sync(member)

    def _record_sync(self, member: ClassicMember) -> None:
        self.group = self.group.changed(pending_sync=self.group.pending_sync - {member.member_id})
        if not self.group.pending_sync:
            self._cancel_timer(SYNC)

    def _handle_sync_timeout(self) -> None:
        """Remove members that did not send SyncGroup in time (KIP-731), and rebalance.

        This also happens in STABLE: the partitions of a member that never asks for its assignment are read by no member.
        """
        late = tuple(self.group.pending_sync)
        if late:
            self.group = self.group.without(*late)
            for member_id in late:
                self._cancel_timer(SESSION, member_id)
            self._log_event(MembersRemoved(self.group.group_id, late, "synced"))
            self.prepare_rebalance(f"{len(late)} members did not send SyncGroup in time")

    # --- Heartbeats, timers and members that leave ---------------------------------------------------------------

    def heartbeat(self, event: HeartbeatReceived) -> None:
        request = event.request
        error = self.group.generation_error(request.generation_id, request.member_id, request.group_instance_id)
        if not error:
            self.restart_session(self.group.members[request.member_id])
        self._respond(event.ticket, error or HEARTBEAT_ERRORS[self.group.state])

    def handle_timer(self, name: TimerName) -> None:
        if name.kind == SESSION:
            self._expire_session(name.member)
        elif name.kind == JOIN:
            self._handle_join_timeout()
        else:
            assert name.kind == SYNC
            self._handle_sync_timeout()

    def _expire_session(self, member_id: str) -> None:
        """Remove a member that sent no heartbeat in its session, unless it waits for a response and cannot send one."""
        member = self.group.members.get(member_id)
        if member is None:
            self.group = self.group.changed(pending=self.group.pending - {member_id})
            if self.group.state is ClassicGroupState.PREPARING_REBALANCE:
                self._complete_join_if_all_joined()
        elif member.is_new or not member.is_waiting:
            self._log_event(MemberFailed(self.group.group_id, member_id))
            self._remove_member(member)
            self._rebalance_if_members_changed(f"the session of {member_id} timed out")

    def leave(self, event: LeaveRequested) -> None:
        """Handle LeaveGroup of a member, or of several members by an administrator."""
        before = self.group
        results: list[int] = []
        left: list[str] = []
        unused: list[str] = []
        gone: set[str] = set()
        static_members = {
            member.instance_id: member for member in before.members.values() if member.instance_id is not None
        }
        # The members are removed together: one after the other would copy the group for each of them.
        for identity in event.members:
            error, member = self._leaving_member(identity, static_members)
            name = identity.member_id if member is None else member.member_id
            if not error and name in gone:
                error, member = ErrorCode.UNKNOWN_MEMBER_ID, None
            results.append(error)
            if error:
                continue
            gone.add(name)
            if member is not None:
                self._release_member(member)
                left.append(name)
                reason = identity.reason or "without a reason"
                self._log_event(MemberLeft(before.group_id, name, reason))
            else:
                unused.append(name)
                self._cancel_timer(SESSION, name)
        if gone:
            self.group = self.group.without(*left, *unused)
        self._respond(event.ticket, results)
        if self.group is not before:
            self._rebalance_if_members_changed(
                f"{format_members(left) or 'a member that had not joined yet'} left by LeaveGroup"
            )

    def _leaving_member(
        self, identity: MemberIdentity, static_members: Mapping[str, ClassicMember]
    ) -> tuple[int, ClassicMember | None]:
        """Return an error code and the member; no member for a member id that was not used to join yet."""
        instance_id = identity.group_instance_id
        known = None if instance_id is None else static_members.get(instance_id)
        # An administrator names a static member by its instance id alone (KIP-345).
        if not identity.member_id:
            return (ErrorCode.NONE if known else ErrorCode.UNKNOWN_MEMBER_ID), known
        if identity.member_id in self.group.pending:
            return ErrorCode.NONE, None
        if instance_id is None:
            known = self.group.members.get(identity.member_id)
        if known is None:
            return ErrorCode.UNKNOWN_MEMBER_ID, None
        if known.member_id != identity.member_id:
            return ErrorCode.FENCED_INSTANCE_ID, None
        return ErrorCode.NONE, known

    def _remove_member(self, member: ClassicMember) -> None:
        """Remove a member and reject the requests of it that are held."""
        self._release_member(member)
        self.group = self.group.without(member.member_id)

    def _release_member(self, member: ClassicMember) -> None:
        """Reject the requests of a leaving member that are held."""
        self._respond(member.join_ticket, join_error_response(ErrorCode.UNKNOWN_MEMBER_ID, member.member_id))
        self._respond(member.sync_ticket, sync_error_response(ErrorCode.UNKNOWN_MEMBER_ID))
        self._cancel_timer(SESSION, member.member_id)

    def _rebalance_if_members_changed(self, reason: str) -> None:
        """Rebalance after members were removed. Pending member ids have no assignment, so a STABLE group keeps its own."""
        state = self.group.state
        if state is ClassicGroupState.PREPARING_REBALANCE or (
            state is not ClassicGroupState.EMPTY and self.group.members != self._before.members
        ):
            self._rebalance(reason)

    def handle_disconnect(self, event: ClientDisconnected) -> None:
        """Handle a closed connection. A known member may rejoin until its session expires; a new member is removed."""
        member = next(
            (
                member
                for member in self.group.members.values()
                if event.waiting in (member.join_ticket, member.sync_ticket)
            ),
            None,
        )
        if member is None:
            return
        if member.is_new:
            self._drop_member(member.member_id)  # its client does not know its id
            return
        self.group = self.group.with_member(replace(member, join_ticket=0, sync_ticket=0))
        self.restart_session(member)


# Rules that need no decision.


def is_session_timeout_allowed(config: GroupConfig, request: JoinGroupRequest) -> bool:
    """Return True if the session timeout is within the broker's limits."""
    return config.min_session_timeout_ms <= request.session_timeout_ms <= config.max_session_timeout_ms


def commit_error(group: ClassicGroup | None, event: OffsetsCommitted) -> int:
    """Return the error for OffsetCommit. A group without members accepts commits that claim no generation."""
    if event.generation < 0 and (group is None or group.state is ClassicGroupState.EMPTY):
        return ErrorCode.NONE
    if group is None:
        is_known_error = event.version >= GROUP_ID_NOT_FOUND_VERSION
        return ErrorCode.GROUP_ID_NOT_FOUND if is_known_error else ErrorCode.ILLEGAL_GENERATION
    error = group.generation_error(event.generation, event.member_id, event.instance_id)
    if not error and group.state is ClassicGroupState.COMPLETING_REBALANCE:
        # The member is in the new generation already, and commits what it read in the last one.
        return ErrorCode.REBALANCE_IN_PROGRESS
    return error


def transactional_commit_error(group: ClassicGroup | None, event: TransactionalOffsetsCommitted) -> int:
    """Return the error for TxnOffsetCommit. Producers before KIP-447 claim no membership."""
    if event.generation < 0 and not event.member_id and event.instance_id is None:
        return ErrorCode.NONE
    if group is None:
        if event.generation < 0:
            return ErrorCode.NONE
        is_known_error = event.version >= TRANSACTIONAL_GROUP_ID_NOT_FOUND_VERSION
        return ErrorCode.GROUP_ID_NOT_FOUND if is_known_error else ErrorCode.ILLEGAL_GENERATION
    if event.generation < 0 and group.state is ClassicGroupState.EMPTY:
        return ErrorCode.NONE
    return group.generation_error(event.generation, event.member_id, event.instance_id)


def keeps_assignment(before: ClassicGroup, after: ClassicGroup) -> bool:
    """Return True if the assignment is still what the members want after a static member has returned.

    Kafka compares only the protocol. A member that returned with other topics would then not get them before the next rebalance.
    """
    protocol = before.protocol_name
    return after.elected_protocol() == protocol and after.subscribed_topics(protocol) == before.topics


def has_to_revoke(group: ClassicGroup, member: ClassicMember) -> bool:
    """Return True if a member had to revoke partitions and to join again afterwards (KIP-429).

    The process in its place owns nothing to revoke and would not join again, so that the partitions would stay unassigned.
    """
    owned = owned_partitions(member.metadata(group.protocol_name)) if group.protocol_type == CONSUMER else frozenset()
    return bool(owned) and not owned <= assigned_partitions(member.assignment)


def updated_member(member: ClassicMember, event: JoinRequested, member_id: str) -> ClassicMember:
    """Return a member with the values of its new JoinGroup."""
    request = event.request
    return replace(
        member,
        member_id=member_id,
        client_id=event.client_id,
        client_host=event.client_host,
        rebalance_timeout_ms=rebalance_timeout_ms(request),
        session_timeout_ms=request.session_timeout_ms,
        protocols=protocols_of(request),
        join_ticket=event.ticket,
        sync_ticket=0,
        _topics={},
    )


def protocols_of(request: JoinGroupRequest) -> Protocols:
    return tuple((protocol.name, bytes(protocol.metadata)) for protocol in request.protocols)


def rebalance_timeout_ms(request: JoinGroupRequest) -> int:
    """Return the rebalance timeout; JoinGroup v0 has one timeout for both."""
    return request.rebalance_timeout_ms if request.rebalance_timeout_ms >= 0 else request.session_timeout_ms
