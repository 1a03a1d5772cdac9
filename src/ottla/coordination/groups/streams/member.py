"""One member of a streams group, and its tasks, as values; a new one for each change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Any

from msgspec import Struct, field

from ottla.protocol.messages.streams_group_heartbeat import Endpoint, TaskIds

Task = tuple[str, int]
"""A task: the id of its subtopology, and its partition."""
TaskEpochs = Mapping[Task, int]
"""Tasks, and for each the member epoch in which it was assigned."""
NO_TASKS: frozenset[Task] = frozenset()
NO_EPOCHS: TaskEpochs = MappingProxyType({})
LEAVING, LEAVING_FOR_A_WHILE = -1, -2
"""The epochs with which members leave; with the second a static member leaves temporarily."""


class MemberState(IntEnum):
    """The progress of a member towards its target assignment; the numbers are Kafka's."""

    STABLE = 1
    """It has all tasks of its epoch."""
    UNREVOKED_TASKS = 2
    """It has tasks to revoke, and has not acknowledged that yet."""
    UNRELEASED_TASKS = 3
    """It waits for tasks that other members have not revoked."""
    UNKNOWN = 127
    """Written by a coordinator that knows more states."""


class Tasks(Struct, frozen=True):
    """The tasks of one member, by role."""

    active: frozenset[Task] = NO_TASKS
    """Tasks that read, process and write."""
    standby: frozenset[Task] = NO_TASKS
    """Tasks that only keep a copy of the state."""
    warmup: frozenset[Task] = NO_TASKS
    """Tasks that restore the state before they become active."""

    @property
    def is_empty(self) -> bool:
        return not (self.active or self.standby or self.warmup)

    @property
    def all(self) -> frozenset[Task]:
        """The tasks of all roles."""
        return self.active | self.standby | self.warmup

    def combine(self, other: Tasks) -> Tasks:
        return Tasks(self.active | other.active, self.standby | other.standby, self.warmup | other.warmup)

    def common(self, other: Tasks) -> Tasks:
        """Return the tasks that both have in the same role."""
        return Tasks(self.active & other.active, self.standby & other.standby, self.warmup & other.warmup)

    def without(self, other: Tasks) -> Tasks:
        """Return the tasks that `other` does not have in the same role."""
        return Tasks(self.active - other.active, self.standby - other.standby, self.warmup - other.warmup)

    def overlaps(self, other: Tasks) -> bool:
        """Return True if both have a task in the same role."""
        return not self.common(other).is_empty


NO_ROLES = Tasks()


class StreamsMember(Struct, frozen=True):
    """A member as the coordinator knows it."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    """The process of the member; the members of one process share their state directory."""
    endpoint: Endpoint | None = None
    """The endpoint of its process for interactive queries."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """The `client.tag.…` settings of its process."""
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Tasks = NO_ROLES
    revoking: Tasks = NO_ROLES
    """The tasks that it has to revoke and may still use."""
    epochs: TaskEpochs = NO_EPOCHS
    """Each active task in `assigned` and `revoking`, with the epoch in which it was assigned."""

    def is_reconciled_to(self, epoch: int) -> bool:
        """Return True if it has reached this epoch and has nothing to revoke or to wait for."""
        return self.state is MemberState.STABLE and self.epoch == epoch

    @property
    def held(self) -> Tasks:
        """The tasks that it may use at the moment."""
        return self.assigned.combine(self.revoking)


def by_subtopology(tasks: Iterable[Task]) -> dict[str, list[int]]:
    """Return the partitions of tasks by subtopology, all in order."""
    found: dict[str, list[int]] = {}
    for subtopology, partition in sorted(tasks):
        found.setdefault(subtopology, []).append(partition)
    return found


def task_ids(tasks: Iterable[Task]) -> list[TaskIds]:
    """Return tasks as they are sent and stored."""
    return [TaskIds(subtopology, partitions) for subtopology, partitions in by_subtopology(tasks).items()]


def tasks_in(ids: Iterable[Any]) -> frozenset[Task]:
    """Return the tasks of a message's or a record's list."""
    return frozenset((each.subtopology_id, partition) for each in ids for partition in each.partitions)
