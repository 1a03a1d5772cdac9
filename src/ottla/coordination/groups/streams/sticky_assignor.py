"""The assignor of streams groups, "sticky": balanced over members, with as few moves as possible (KIP-1071).

Tasks are placed in three rounds, so that each kind is spread evenly by itself: stateful active tasks, stateless active tasks, standby tasks.
Within a round a task goes to the member that had it, as long as this member has not reached its quota; then to a member that has the
state of the task on its disk (a standby, or offsets that it reported); then to the member with the least load. A process has a task once at most.

With `streams.rack.aware.assignment.tags` standby tasks go to the processes whose tags differ most from those of the other copies.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heapreplace

from msgspec import Struct, field

from ottla.coordination.groups.streams.member import NO_ROLES, Task, Tasks

NAME = "sticky"


class MemberSpec(Struct, frozen=True):
    """A member, as the assignor sees it."""

    process_id: str
    previous: Tasks = NO_ROLES
    """Its last target assignment."""
    offsets: Mapping[Task, int] = field(default_factory=dict)
    """The offsets that it reported for tasks whose state it has on its disk."""
    tags: Mapping[str, str] = field(default_factory=dict)


class GroupSpec(Struct, frozen=True):
    """The input of the assignor."""

    stateful: Sequence[Task]
    stateless: Sequence[Task]
    members: Mapping[str, MemberSpec]
    standby_count: int = 0
    """The number of standby tasks for each stateful task."""
    tags: Sequence[str] = ()
    """The tags in which the copies of a task should differ."""


class Quota:
    """The largest number of tasks of a member: the average, rounded up until the remainder is used."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self._full: set[str] = set()

    @property
    def limit(self) -> int:
        return -(-self._tasks // self._members) if self._members else 0

    def count(self, name: str, tasks: int) -> None:
        """Note that a member has so many tasks now. A member at its limit is left out of the average of the others."""
        if self._members and tasks >= self.limit and name not in self._full:
            self._full.add(name)
            self._tasks -= tasks
            self._members -= 1


class Placement:
    """Tasks that have been assigned so far, and the loads and quotas that result from them."""

    def __init__(self, spec: GroupSpec) -> None:
        self._spec = spec
        self._active: dict[str, set[Task]] = {name: set() for name in spec.members}
        self._standby: dict[str, set[Task]] = {name: set() for name in spec.members}
        self._at_process: dict[str, set[Task]] = defaultdict(set)
        self._processes: dict[str, list[str]] = defaultdict(list)
        for name in sorted(spec.members):
            self._processes[spec.members[name].process_id].append(name)
        self._owner = {task: name for name, each in spec.members.items() for task in each.previous.active}
        self._keepers = rank_keepers(spec.members)

    def assign_active(self, tasks: Iterable[Task]) -> None:
        """Assign the active tasks of one round."""
        tasks = sorted(tasks, key=lambda task: (task[1], task[0]))
        placed = sum(len(each) for each in self._active.values())
        quota = Quota(len(tasks) + placed, len(self._active))
        for name in self._active:
            quota.count(name, self._size(name))
        left = [
            task
            for task in tasks
            if not self._keep_active(task, [self._owner[task]] if task in self._owner else [], quota)
        ]
        left = [task for task in left if not self._keep_active(task, self._keepers.get(task, ()), quota)]
        # By subtopology: its partitions are spread over the processes in turn.
        heap = [(self._load_of(process), process) for process in self._processes]
        heapify(heap)
        for task in sorted(left):
            process = heap[0][1]
            name = min(self._processes[process], key=lambda each: len(self._active[each]))
            self._put(self._active, task, name)
            heapreplace(heap, (self._load_of(process), process))

    def assign_standby(self, tasks: Sequence[Task]) -> None:
        """Assign the copies of stateful tasks, as many as there are processes for."""
        copies = min(self._spec.standby_count, len(self._processes) - 1)
        placed = sum(len(each) for each in self._active.values())
        quota = Quota(placed + copies * len(tasks), len(self._active))
        for name in self._active:
            quota.count(name, self._size(name))
        for _ in range(copies):
            left = [task for task in sorted(tasks) if not self._keep_standby(task, quota)]
            for task in left:
                free = [each for each in self._processes if task not in self._at_process[each]]
                process = min(free, key=lambda each: (self._repetitions(each, task), self._load_of(each), each))
                best = min(self._processes[process], key=self._size)
                self._put(self._standby, task, best)
                quota.count(best, self._size(best))

    def result(self) -> dict[str, Tasks]:
        return {name: Tasks(frozenset(self._active[name]), frozenset(self._standby[name])) for name in self._active}

    def _keep_active(self, task: Task, names: Sequence[str], quota: Quota) -> bool:
        known = [name for name in names if self._size(name) < quota.limit]
        if not known:
            return False
        name = min(known, key=lambda each: self._load_of(self._spec.members[each].process_id))
        self._put(self._active, task, name)
        quota.count(name, self._size(name))
        return True

    def _keep_standby(self, task: Task, quota: Quota) -> bool:
        """Assign a copy to a member that has the state. With tags, diversity decides first."""
        if self._spec.tags:
            return False
        known = (
            each for each in self._keepers_of(task) if self._size(each) < quota.limit and not self._has(each, task)
        )
        name = next(known, None)
        if name is None:
            return False
        self._put(self._standby, task, name)
        quota.count(name, self._size(name))
        return True

    def _keepers_of(self, task: Task) -> list[str]:
        """Return the members that have the state of a task; the member at which it was active is the first."""
        owner = [self._owner[task]] if task in self._owner else []
        return [*owner, *self._keepers.get(task, ())]

    def _put(self, role: dict[str, set[Task]], task: Task, name: str) -> None:
        role[name].add(task)
        self._at_process[self._spec.members[name].process_id].add(task)

    def _has(self, name: str, task: Task) -> bool:
        """Return True if the process of a member has a task already."""
        return task in self._at_process[self._spec.members[name].process_id]

    def _size(self, name: str) -> int:
        return len(self._active[name]) + len(self._standby[name])

    def _load_of(self, process: str) -> float:
        """Return the number of tasks of a process for each of its members."""
        return len(self._at_process[process]) / len(self._processes[process])

    def _repetitions(self, process: str, task: Task) -> tuple[int, bool]:
        """Return in how many tags a process equals one with a copy of the task, and False if it has the state already."""
        if not self._spec.tags:
            return 0, True
        tags = self._tags_of(process)
        others = [self._tags_of(each) for each in self._processes if task in self._at_process[each]]
        equal = sum(any(tags.get(tag) == other.get(tag) for other in others) for tag in self._spec.tags)
        return equal, all(self._spec.members[name].process_id != process for name in self._keepers_of(task))

    def _tags_of(self, process: str) -> Mapping[str, str]:
        return self._spec.members[self._processes[process][0]].tags


def assign_sticky(spec: GroupSpec) -> dict[str, Tasks]:
    """Return the target assignment of each member."""
    placement = Placement(spec)
    if spec.members:
        placement.assign_active(spec.stateful)
        placement.assign_active(spec.stateless)
        placement.assign_standby(spec.stateful)
    return placement.result()


def rank_keepers(members: Mapping[str, MemberSpec]) -> dict[Task, list[str]]:
    """Return the members that have the state of each task: those with a standby or warm-up task first, then the most complete state."""
    found: dict[Task, list[tuple[bool, int, str]]] = defaultdict(list)
    for name, member in members.items():
        copies = member.previous.standby | member.previous.warmup
        for task in copies | member.offsets.keys():
            found[task].append((task not in copies, -member.offsets.get(task, 0), name))
    return {task: [name for _, _, name in sorted(keepers)] for task, keepers in found.items()}
