"""Mistakes that an implementation of share groups can make, each to be planted and found by the histories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from ottla.coordination.share import share_partition, share_state
from ottla.coordination.share.events import Completion, Effects, PersistedState, ShareAcknowledgementBatch
from ottla.coordination.share.record_state import RecordState
from ottla.coordination.share.share_partition import SharePartition, StateChanges
from ottla.coordination.share.share_state import KeyState, ReadRequested, ShareState
from ottla.coordination.share.state_batches import PersisterStateBatch, combine_state_batches
from ottla.errors import ErrorCode

Plant = Callable[[pytest.MonkeyPatch], None]


def frees_records_whose_acknowledgement_failed(patch: pytest.MonkeyPatch) -> None:
    """A record is acquired by a second member while the first one still has its lock."""
    roll_back = SharePartition._roll_back

    def free(self: SharePartition, changes: StateChanges) -> None:
        roll_back(self, changes)
        for each in self._ranges_in(changes.revocable):
            each.state, each.member_id, each.deadline = RecordState.AVAILABLE, "", None

    patch.setattr(SharePartition, "_roll_back", free)


def forgets_to_renew_locks(patch: pytest.MonkeyPatch) -> None:
    """The member believes to have its records for longer than the leader does (KIP-1222)."""
    acknowledge = SharePartition.acknowledge

    def ignore_renewals(
        self: SharePartition, ticket: int, member_id: str, batches: Sequence[ShareAcknowledgementBatch], now: float
    ) -> Effects:
        if all(set(batch.types) == {4} for batch in batches):
            return Effects(completions=(Completion(ticket, ErrorCode.NONE),))
        return acknowledge(self, ticket, member_id, batches, now)

    patch.setattr(SharePartition, "acknowledge", ignore_renewals)


def skips_gaps_after_a_failover(patch: pytest.MonkeyPatch) -> None:
    """Records that were acquired and never released are not in the persisted state: they are forgotten."""
    restore = SharePartition._restore

    def skip_gaps(self: SharePartition, batches: Iterable[PersisterStateBatch]) -> None:
        start = self._start_offset
        known = combine_state_batches((), batches, start)
        gaps = []
        for batch in known:
            if start < batch.first_offset:
                gaps.append(PersisterStateBatch(start, batch.first_offset - 1, RecordState.ARCHIVED, 0))
            start = batch.last_offset + 1
        restore(self, [*known, *gaps])

    patch.setattr(SharePartition, "_restore", skip_gaps)


def starts_behind_the_persisted_records(patch: pytest.MonkeyPatch) -> None:
    """A new leader reads on after the last record of which anything is persisted."""

    def restore(self: SharePartition, batches: Iterable[PersisterStateBatch]) -> None:
        last = max((batch.last_offset for batch in batches), default=self._start_offset - 1)
        self._start_offset = self._end_offset = last + 1

    patch.setattr(SharePartition, "_restore", restore)


def confirms_before_anything_is_persisted(patch: pytest.MonkeyPatch) -> None:
    """An accepted record is delivered again by the next leader."""
    acknowledge, complete_write = SharePartition.acknowledge, SharePartition.complete_write

    def confirm(
        self: SharePartition, ticket: int, member_id: str, batches: Sequence[ShareAcknowledgementBatch], now: float
    ) -> Effects:
        effects = acknowledge(self, ticket, member_id, batches, now)
        if effects.completions:
            return effects
        return Effects(effects.write, (Completion(ticket, ErrorCode.NONE),), effects.dead_letters)

    def complete(self: SharePartition, error: ErrorCode, now: float) -> Effects:
        assert self._written is not None
        confirmed = set(self._written.tickets)
        effects = complete_write(self, error, now)
        left = tuple(each for each in effects.completions if each.ticket not in confirmed)
        return Effects(effects.write, left, effects.dead_letters)

    patch.setattr(SharePartition, "acknowledge", confirm)
    patch.setattr(SharePartition, "complete_write", complete)


def lets_a_replaced_leader_write(patch: pytest.MonkeyPatch) -> None:
    """The new leader has read the state before the old one confirms an acknowledgement."""
    patch.setattr(share_state, "epoch_error", lambda state, leader_epoch, state_epoch: ErrorCode.NONE)


def does_not_record_which_leader_has_read(patch: pytest.MonkeyPatch) -> None:
    """The same, because only a write of the new leader fences the old one."""

    def read(self: ShareState, event: ReadRequested) -> Any:
        state = self._states[event.key]
        return share_state.reply_only(event.ticket, replace(state, leader_epoch=event.leader_epoch))

    patch.setattr(ShareState, "_read", read)
    patch.setitem(share_state.DECIDES, ReadRequested, read)


def loses_delivery_counts_at_a_failover(patch: pytest.MonkeyPatch) -> None:
    """A bad record is delivered again and again, as often as leaders change."""
    init = SharePartition.__init__

    def forget(self: SharePartition, persisted: PersistedState, *rest: Any) -> None:
        batches = tuple(
            PersisterStateBatch(*batch[:3], 0) if batch.state == RecordState.AVAILABLE else batch
            for batch in persisted.batches
        )
        init(self, replace(persisted, batches=batches), *rest)

    patch.setattr(SharePartition, "__init__", forget)


def loses_delivery_counts_when_a_lock_expires(patch: pytest.MonkeyPatch) -> None:
    """An expired lock is handled like a closed session, whose delivery does not count."""
    add = StateChanges.add

    def forget(self: StateChanges, changed: share_partition.InFlightRange) -> None:
        if changed.state == RecordState.AVAILABLE and not changed.is_changing:
            changed.delivery_count -= 1
        add(self, changed)

    patch.setattr(StateChanges, "add", forget)


def does_not_resume_dead_letters(patch: pytest.MonkeyPatch) -> None:
    """Records that the previous leader was about to copy stay in the window for ever."""
    patch.setattr(SharePartition, "resume_dead_letters", lambda self: ())


def waits_for_records_that_the_log_does_not_have(patch: pytest.MonkeyPatch) -> None:
    """Released records that were compacted meanwhile stay in the window for ever."""
    patch.setattr(SharePartition, "_archive_missing", lambda self, fetch_offset, first_offset: None)


def lets_a_delayed_write_move_the_start_offset_back(patch: pytest.MonkeyPatch) -> None:
    """A write that was given up is handled after later ones."""
    updated_state = share_state.updated_state

    def move_back(state: KeyState, change: Any) -> KeyState:
        after = updated_state(state, change)
        return after if change.start_offset < 0 else replace(after, start_offset=change.start_offset)

    patch.setattr(share_state, "updated_state", move_back)


def lets_the_last_write_win(patch: pytest.MonkeyPatch) -> None:
    """A delayed write replaces the state of a later delivery."""

    def combine(
        current: Sequence[PersisterStateBatch], changes: Iterable[PersisterStateBatch], start_offset: int = -1
    ) -> tuple[PersisterStateBatch, ...]:
        states = {}
        for batch in (*current, *changes):
            for offset in range(max(batch.first_offset, start_offset), batch.last_offset + 1):
                states[offset] = PersisterStateBatch(offset, offset, *batch[2:])
        return combine_state_batches((), states.values())

    patch.setattr(share_state, "combine_state_batches", combine)


PLANTED: dict[Plant, int] = {
    frees_records_whose_acknowledgement_failed: 0,
    forgets_to_renew_locks: 0,
    skips_gaps_after_a_failover: 3,
    starts_behind_the_persisted_records: 0,
    confirms_before_anything_is_persisted: 0,
    lets_a_replaced_leader_write: 0,
    does_not_record_which_leader_has_read: 0,
    loses_delivery_counts_at_a_failover: 0,
    loses_delivery_counts_when_a_lock_expires: 0,
    does_not_resume_dead_letters: 0,
    waits_for_records_that_the_log_does_not_have: 0,
    lets_a_delayed_write_move_the_start_offset_back: 53,
    lets_the_last_write_win: 72,
}
"""And a seed at which it was found, to be tried first."""
