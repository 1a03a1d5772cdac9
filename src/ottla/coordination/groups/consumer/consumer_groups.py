"""The consumer groups of one partition of `__consumer_offsets`, and what is decided about each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from ottla.coordination.groups.classic.group import CONSUMER, ClassicGroup, ClassicGroupState
from ottla.coordination.groups.classic.responses import join_error_response, sync_error_response
from ottla.coordination.groups.config import GroupConfig
from ottla.coordination.groups.consumer import classic_members
from ottla.coordination.groups.consumer.conversion import downgrade, is_to_downgrade, upgrade
from ottla.coordination.groups.consumer.draft import REVOCATION, ConsumerDraft
from ottla.coordination.groups.consumer.events import (
    ConsumerHeartbeat,
    GroupConfigsRecord,
    OwnSettings,
    TopicImageRecord,
)
from ottla.coordination.groups.consumer.group import ConsumerGroup
from ottla.coordination.groups.consumer.heartbeats import heartbeat
from ottla.coordination.groups.consumer.image import TopicImage
from ottla.coordination.groups.consumer.leaving import handle_timer
from ottla.coordination.groups.consumer.member import MemberState
from ottla.coordination.groups.consumer.records import ConsumerGroupRecord, GroupEpochKey
from ottla.coordination.groups.consumer.refusal import RequestRejected
from ottla.coordination.groups.consumer.validation import check_request
from ottla.coordination.groups.events import (
    HeartbeatReceived,
    JoinRequested,
    LeaveRequested,
    SyncRequested,
    TimerExpired,
)
from ottla.coordination.machine import Decision, Reply, merge_decisions
from ottla.errors import ErrorCode
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse


class ConsumerGroups:
    """Groups by id, and the topics as they were seen last."""

    def __init__(self, config: GroupConfig) -> None:
        self.config = config
        self.groups: dict[str, ConsumerGroup] = {}
        self.image = TopicImage()
        self.settings: OwnSettings = {}

    def replay(self, record: ConsumerGroupRecord | TopicImageRecord | GroupConfigsRecord) -> None:
        """Replay a record. A tombstone of an unknown group is ignored."""
        if isinstance(record, TopicImageRecord):
            self.image = record.image
            return
        if isinstance(record, GroupConfigsRecord):
            self.settings = record.settings
            return
        if isinstance(record.key, GroupEpochKey) and record.value is None:
            self.groups.pop(record.group_id, None)
            return
        group = self.groups.get(record.group_id)
        if group is None:
            if record.value is None:
                return
            group = self.groups[record.group_id] = ConsumerGroup(record.group_id)
        group.apply(record)

    def check(self) -> None:
        for name, group in self.groups.items():
            assert group.group_id == name
            group.check()

    def heartbeat(self, event: ConsumerHeartbeat, classic: ClassicGroup | None, now: float) -> Decision[Any]:
        """Handle a heartbeat of a member of the newer protocol. `classic` is the classic group of that name, if there is one."""
        try:
            check_request(event.request, event.version, self.config.consumer_assignors)
            draft = self._draft_of(event, classic, now)
            heartbeat(draft, event)
        except RequestRejected as refused:
            answer = ConsumerGroupHeartbeatResponse(error_code=refused.code, error_message=str(refused))
            return Decision(replies=(Reply(event.ticket, answer),))
        return self._finish_draft(draft)

    def join(self, event: JoinRequested, now: float) -> Decision[Any]:
        """Handle a JoinGroup of a classic member to a group that has members of the newer protocol."""
        request = event.request
        return self._decide_or_reject(
            request.group_id,
            now,
            event.wall_ms,
            lambda draft: classic_members.join(draft, event),
            lambda code: Reply(event.ticket, join_error_response(code, request.member_id)),
        )

    def sync(self, event: SyncRequested, now: float) -> Decision[Any]:
        return self._decide_or_reject(
            event.request.group_id,
            now,
            event.wall_ms,
            lambda draft: classic_members.sync(draft, event),
            lambda code: Reply(event.ticket, sync_error_response(code)),
        )

    def classic_heartbeat(self, event: HeartbeatReceived, now: float) -> Decision[Any]:
        return self._decide_or_reject(
            event.request.group_id,
            now,
            0,
            lambda draft: classic_members.classic_heartbeat(draft, event),
            lambda code: Reply(event.ticket, code),
        )

    def leave(self, event: LeaveRequested, now: float) -> Decision[Any]:
        """Remove members of either protocol that leave."""
        return self._decide_or_reject(
            event.request.group_id,
            now,
            event.wall_ms,
            lambda draft: classic_members.leave(draft, event),
            lambda code: Reply(event.ticket, code),
        )

    def handle_timer(self, event: TimerExpired, now: float) -> Decision[Any]:
        draft = self._draft(self.groups[event.name.group], now, event.wall_ms)
        handle_timer(draft, event.name)
        return self._finish_draft(draft)

    def loaded(self, now: float, wall_ms: int) -> list[Decision[Any]]:
        """Everybody has a fresh session, and time to give back what was not given back."""
        return [self._resume_timers(self._draft(group, now, wall_ms)) for group in self.groups.values()]

    def tombstones(self, group: ConsumerGroup) -> tuple[Any, ...]:
        """Return the records that delete a group."""
        draft = self._draft(group, 0.0, 0)
        draft.remove_group()
        return tuple(draft.records)

    def _resume_timers(self, draft: ConsumerDraft) -> Decision[Any]:
        for member in draft.group.members.values():
            draft.start_session(member)
            if member.state is MemberState.UNREVOKED_PARTITIONS and member.classic is None:
                draft.schedule(REVOCATION, member.rebalance_timeout_ms, member.member_id)
        return draft.decision()

    def _draft_of(self, event: ConsumerHeartbeat, classic: ClassicGroup | None, now: float) -> ConsumerDraft:
        """Return the draft of the existing group, of a new one, or of one that is converted from a classic group."""
        group_id = event.request.group_id
        group = self.groups.get(group_id)
        if group is not None:
            return self._draft(group, now, event.wall_ms)
        if event.request.member_epoch != 0:
            raise RequestRejected(ErrorCode.GROUP_ID_NOT_FOUND, not_found(group_id, classic))
        # It becomes part of the machine when its first record is replayed, and not if the member is refused.
        made = ConsumerGroup(group_id)
        draft = ConsumerDraft(made, self._config_of(group_id), self.image, now, event.wall_ms, group_is_new=True)
        if classic is not None and not classic.is_blank:
            upgrade(draft, classic)
        return draft

    def _draft(self, group: ConsumerGroup, now: float, wall_ms: int) -> ConsumerDraft:
        return ConsumerDraft(group, self._config_of(group.group_id), self.image, now, wall_ms)

    def _config_of(self, group_id: str) -> GroupConfig:
        """Return the settings of a group: the broker's, overridden by the group's own configs."""
        own: Mapping[str, Any] | None = self.settings.get(group_id)
        ours = {name: value for name, value in own.items() if name.startswith("consumer_")} if own else {}
        return replace(self.config, **ours) if ours else self.config

    def _decide_or_reject(
        self,
        group_id: str,
        now: float,
        wall_ms: int,
        act: Callable[[ConsumerDraft], None],
        refusal: Callable[[int], Reply],
    ) -> Decision[Any]:
        draft = self._draft(self.groups[group_id], now, wall_ms)
        try:
            act(draft)
        except RequestRejected as refused:
            return Decision(replies=(refusal(refused.code),))
        return self._finish_draft(draft)

    def _finish_draft(self, draft: ConsumerDraft) -> Decision[Any]:
        """Return the draft as a decision. The group becomes a classic group again if only classic members are left."""
        if not draft.records or not is_to_downgrade(draft.group, self.config):
            return draft.decision()
        step = downgrade(draft)
        return merge_decisions([draft.decision(), step.result()])


def not_found(group_id: str, other: object | None) -> str:
    """Return the message for a group that does not exist in this protocol; `other` is the group of that id in the other protocol, if any."""
    return f"there is no group {group_id}" if other is None else f"group {group_id} is of another protocol"


def as_classic_group(group: ConsumerGroup) -> ClassicGroup:
    """Return a consumer group in the form that is needed to expire and delete offsets: its state and the topics that its members read."""
    state = ClassicGroupState.STABLE if group.members else ClassicGroupState.EMPTY
    return ClassicGroup(group.group_id, state, group.epoch, CONSUMER, topics=group.names)
