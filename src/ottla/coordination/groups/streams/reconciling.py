"""Reconciliation of one member: from its current tasks to its target assignment (KIP-1071).

    Stable ──► UnrevokedTasks ──► UnreleasedTasks ──► Stable
       └─────────────────────────────┴──────────────────┘   states that are not needed are skipped

It is the reconciliation of consumer groups (`consumer/reconciling`), with tasks instead of partitions. A member with tasks to revoke stays in
its epoch until it has sent a heartbeat without them, for which it has its rebalance timeout. Then it enters the epoch of the target and is assigned the
tasks that are free.

An active task is free if no member has it as active. Each task is also bound to the state directory of a process: no role of a task is
assigned to a process of which a member still has the same task, in any role. So a standby task that becomes active at the same process is
revoked before it is assigned.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from ottla.coordination.groups.consumer.refusal import RequestRejected
from ottla.coordination.groups.streams.member import NO_ROLES, MemberState, StreamsMember, Task, Tasks
from ottla.errors import ErrorCode


class Goal(Struct, frozen=True):
    """The state that a member has to reach."""

    epoch: int
    target: Tasks
    others: Iterable[StreamsMember]
    """All members of the group. The member itself is ignored."""
    owned: Tasks | None
    """The tasks that the member reports; None if the heartbeat omits them."""


def advance_to_goal(member: StreamsMember, goal: Goal) -> StreamsMember:
    """Return the member one step further, or the same if it has to wait."""
    match member.state:
        case MemberState.STABLE if member.epoch == goal.epoch:
            return member
        case MemberState.UNREVOKED_TASKS if can_still_use(goal, member.revoking):
            return member
        case MemberState.UNKNOWN if goal.owned is None or not goal.owned.is_empty:
            raise RequestRejected(
                ErrorCode.FENCED_MEMBER_EPOCH,
                f"member {member.member_id} is in a state that this broker does not know: it has to close its tasks and join again",
            )
    kept = member.assigned.common(goal.target)
    surplus = member.assigned.without(goal.target)
    if not surplus.is_empty and can_still_use(goal, surplus):
        # The epoch increases with each revocation that was acknowledged, because commits of revoked tasks are rejected by it.
        epoch = member.epoch + (member.state is MemberState.UNREVOKED_TASKS)
        return next_member(member, epoch, MemberState.UNREVOKED_TASKS, kept, surplus, goal)
    missing = goal.target.without(kept)
    free = find_free_tasks(member, missing, goal)
    state = MemberState.STABLE if free == missing else MemberState.UNRELEASED_TASKS
    return next_member(member, goal.epoch, state, kept.combine(free), NO_ROLES, goal)


def find_free_tasks(member: StreamsMember, missing: Tasks, goal: Goal) -> Tasks:
    """Return those tasks that can be assigned now."""
    if missing.is_empty:
        return missing
    active: set[Task] = set()
    at_process: set[Task] = set()
    for other in goal.others:
        if other.member_id == member.member_id:
            continue
        held = other.held
        active |= held.active
        if other.process_id == member.process_id:
            at_process |= held.all
    return Tasks(missing.active - active - at_process, missing.standby - at_process, missing.warmup - at_process)


def can_still_use(goal: Goal, tasks: Tasks) -> bool:
    """Return True if the member may still use one of these tasks, by what it reports."""
    return goal.owned is None or goal.owned.overlaps(tasks)


def next_member(
    member: StreamsMember, epoch: int, state: MemberState, assigned: Tasks, revoking: Tasks, goal: Goal
) -> StreamsMember:
    """Return the member in its next state. Active tasks that are new get the epoch of the goal."""
    epochs = {task: member.epochs.get(task, goal.epoch) for task in assigned.active}
    epochs.update({task: member.epochs.get(task, epoch) for task in revoking.active})
    return replace(
        member,
        epoch=epoch,
        previous_epoch=member.epoch,
        state=state,
        assigned=assigned,
        revoking=revoking,
        epochs=epochs,
    )
