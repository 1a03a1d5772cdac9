"""The assignor of streams groups: complete, balanced, sticky, and never two copies at one process."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from ottla.coordination.groups.streams.member import Task, Tasks
from ottla.coordination.groups.streams.sticky_assignor import GroupSpec, MemberSpec, assign_sticky


def tasks(subtopology: str, count: int) -> list[Task]:
    return [(subtopology, partition) for partition in range(count)]


def members(*processes: str) -> dict[str, MemberSpec]:
    return {f"m{number}": MemberSpec(process) for number, process in enumerate(processes)}


def again(spec: GroupSpec, assignment: dict[str, Tasks], without: str = "") -> GroupSpec:
    """Return the spec with what was assigned, and one member less."""
    left = {
        name: MemberSpec(each.process_id, assignment.get(name, Tasks()), each.offsets, each.tags)
        for name, each in spec.members.items()
        if name != without
    }
    return GroupSpec(spec.stateful, spec.stateless, left, spec.standby_count, spec.tags)


def test_nobody_gets_tasks_in_a_group_without_members() -> None:
    assert assign_sticky(GroupSpec(tasks("0", 2), [], {})) == {}


def test_stateful_and_stateless_tasks_are_each_spread_over_the_processes() -> None:
    found = assign_sticky(GroupSpec(tasks("0", 4), tasks("1", 4), members("p", "q")))

    assert [Counter(name for name, _ in each.active) for each in found.values()] == [Counter({"0": 2, "1": 2})] * 2


def test_a_new_member_takes_only_its_share() -> None:
    spec = GroupSpec(tasks("0", 6), [], members("p", "q"))
    before = assign_sticky(spec)
    grown = again(GroupSpec(spec.stateful, [], members("p", "q", "r")), before)

    after = assign_sticky(grown)

    assert sorted(len(each.active) for each in after.values()) == [2, 2, 2]
    assert all(after[name].active <= before[name].active for name in before)


def test_a_standby_takes_the_place_of_the_active_task() -> None:
    spec = GroupSpec(tasks("0", 3), [], members("p", "q", "r"), standby_count=1)
    before = assign_sticky(spec)

    after = assign_sticky(again(spec, before, without="m0"))

    (lost,) = before["m0"].active
    (keeper,) = (name for name in ("m1", "m2") if lost in before[name].standby)
    assert lost in after[keeper].active


def test_state_on_a_disk_attracts_its_task() -> None:
    spec = GroupSpec(
        tasks("0", 2), [], {"m0": MemberSpec("p"), "m1": MemberSpec("q", offsets={("0", 0): 100}), "m2": MemberSpec("r")}
    )  # fmt: skip

    assert ("0", 0) in assign_sticky(spec)["m1"].active


def test_standby_tasks_go_to_other_zones() -> None:
    zones = {"p": "x", "q": "x", "r": "y"}
    spec = GroupSpec(
        tasks("0", 2),
        [],
        {f"m{process}": MemberSpec(process, tags={"zone": zone}) for process, zone in zones.items()},
        standby_count=1,
        tags=("zone",),
    )

    found = assign_sticky(spec)

    for task in spec.stateful:
        (active,) = (name for name, each in found.items() if task in each.active)
        (standby,) = (name for name, each in found.items() if task in each.standby)
        assert zones[active[1:]] != zones[standby[1:]]


@pytest.mark.parametrize("seed", range(60))
def test_any_assignment_is_complete_balanced_and_stable(seed: int) -> None:
    chance = random.Random(seed)
    processes = [f"p{number}" for number in range(chance.randint(1, 5))]
    spec = GroupSpec(
        tasks("0", chance.randint(0, 12)),
        tasks("1", chance.randint(0, 12)),
        members(*(chance.choice(processes) for _ in range(chance.randint(1, 8)))),
        standby_count=chance.randint(0, 2),
    )
    found = assign_sticky(spec)
    check(spec, found)

    repeated = assign_sticky(again(spec, found))
    assert {name: each.active for name, each in repeated.items()} == {
        name: each.active for name, each in found.items()
    }, "no active task moves without a reason"
    if len(spec.members) > 1:
        smaller = again(spec, found, without=chance.choice(sorted(spec.members)))
        after = assign_sticky(smaller)
        check(smaller, after)


def check(spec: GroupSpec, found: dict[str, Tasks]) -> None:
    """Assert that each active task is assigned once, each copy to another process, and that no process has too many."""
    assert sorted(task for each in found.values() for task in each.active) == sorted([*spec.stateful, *spec.stateless])
    by_process: dict[str, Counter[Task]] = {}
    for name, each in found.items():
        by_process.setdefault(spec.members[name].process_id, Counter()).update([*each.active, *each.standby])
    assert all(count == 1 for counts in by_process.values() for count in counts.values())
    copies = min(spec.standby_count, len(by_process) - 1)
    assert Counter(task for each in found.values() for task in each.standby) == Counter(
        {task: copies for task in spec.stateful if copies}
    )
    sizes = Counter(each.process_id for each in spec.members.values())
    loads = [sum(counts.values()) / sizes[process] for process, counts in by_process.items()]
    if not copies:
        assert max(loads) - min(loads) <= 1.0 + 1e-9, loads
