"""Random histories of a streams group: no task is ever active twice, and a quiet group becomes stable with all of its tasks."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from ottla.coordination.groups.streams.member import Tasks
from tests.coordination.groups.streams.story import AT_ONCE, Story

MEMBERS = "abcde"
PARTITIONS = 4


class History:
    """A group with honest members, some of which are slow, silent, or lose responses."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        config = replace(AT_ONCE, num_standby_replicas=self.chance.randint(0, 2))
        self.story = Story(config)
        self.story.see_topics(**{"in": PARTITIONS, "rep": PARTITIONS, "log": PARTITIONS})
        self.processes = {name: self.chance.choice("pqr") for name in MEMBERS}
        self.here: set[str] = set()

    def play(self, steps: int) -> None:
        for _ in range(steps):
            self.step(self.chance.choice(MEMBERS))
            self.check_roles()
        group = self.story.machine.groups.get("g")
        for member in sorted(group.members.keys() - self.here if group else ()):
            self.story.expire("streams-session", member)
        for _ in range(12):
            for member in sorted(self.here):
                self.step(member, quietly=True)
            self.check_roles()
        self.check_end()

    def step(self, member: str, *, quietly: bool = False) -> None:
        story = self.story
        if member not in self.here:
            self.join(member)
            return
        what = "alive" if quietly else self.chance.choices(["alive", "keeps", "lost", "bye", "quiet", "restart", "grow"], [12, 3, 3, 1, 1, 1, 0.3])[0]  # fmt: skip
        if what == "restart":
            story.restart()
        elif what == "grow":
            count = story.counts["in"] + 1
            story.see_topics(**dict.fromkeys(("in", "rep", "log"), count))
        elif what == "quiet":
            story.expire("streams-session", member)
            self.forget(member)
        elif what == "bye":
            story.decide(story.heartbeat("bye", [member], {}))
            self.forget(member)
        else:
            self.alive(member, what)

    def alive(self, member: str, what: str) -> None:
        story = self.story
        known = story.epochs[member], story.tasks.get(member, Tasks())
        said = story.decide(story.heartbeat("alive", [member], {"owned": "-"} if what == "keeps" else {}))
        if said[0] in ("FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID"):
            self.forget(member)
        elif what == "lost":
            # The member continues with what it knew, and sends all of it.
            story.epochs[member], story.tasks[member] = known

    def join(self, member: str) -> None:
        words = {"process": self.processes[member]}
        self.story.decide(self.story.heartbeat("join", [member, "count"], words))
        self.here.add(member)

    def forget(self, member: str) -> None:
        self.here.discard(member)
        for known in (self.story.epochs, self.story.tasks, self.story.ever):
            known.pop(member, None)

    def check_roles(self) -> None:
        """Assert that no process has two copies of a task."""
        group = self.story.machine.groups.get("g")
        found: set[tuple[str, object]] = set()
        for member in group.members.values() if group else ():
            for role in (member.held.active, member.held.standby, member.held.warmup):
                for task in role:
                    assert (member.process_id, task) not in found
                    found.add((member.process_id, task))

    def check_end(self) -> None:
        group = self.story.machine.groups.get("g")
        if group is None or not group.members:
            return
        count = self.story.counts["in"]
        assert str(group.state) == "Stable"
        active = sorted(task for member in group.members.values() for task in member.assigned.active)
        assert active == sorted((name, index) for name in "01" for index in range(count))


@pytest.mark.parametrize("seed", range(40))
def test_tasks_are_active_once_and_a_quiet_group_becomes_stable(seed: int) -> None:
    History(seed).play(60)
