"""Groups under random events: every step keeps the invariants, and every request is answered."""

from __future__ import annotations

import random

import pytest

from tests.coordination.groups.story import VERBS, Story

STEPS = 120
LONG = 5_000
"""Seconds after which every session and every rebalance is over."""


def step(story: Story, chance: random.Random) -> None:
    """Run one random event: mostly a valid request of a member, sometimes an invalid one."""
    group = story.machine.groups.get("g")
    ids = [*group.members, *sorted(group.pending)] if group else []
    who = chance.choice([*ids, "stranger"])
    generation = str((group.generation if group else 0) - (chance.random() < 0.1))
    known = group.members.get(who) if group else None
    name = {"static": known.instance_id} if known and known.instance_id else {}
    topics = {
        "range": chance.choice(["t", "t", "t+u"]),
        "session": "10",
        "rebalance": "20",
        "version": chance.choice("059"),
    }
    waiting = [each.member_id for each in group.members.values() if each.is_waiting] if group else []
    everybody = {member: member for member in ids}
    wishes: list[tuple[str, list[str], dict[str, str]]] = [
        ("join", ["a"], {**topics, **({"static": chance.choice("ij")} if chance.random() < 0.4 else {})}),
        ("join", [who], {**topics, **name}),
        ("join", [who], {**topics, **name}),
        ("sync", [who], {"gen": generation, **name, **everybody}),
        ("sync", [who], {"gen": generation, **name, **everybody}),
        ("beat", [who], {"gen": generation, **name}),
        ("commit", [who], {"gen": generation, **name, "t-0": "5"}),
        ("wait", [str(chance.choice([1, 4, 9]))], {}),
        ("leave", [who], name),
        ("delete", ["g"], {}),
        ("expire", [], {}),
        ("restart", [], {}) if chance.random() < 0.2 else ("beat", [who], {"gen": generation, **name}),
    ]
    if waiting:
        wishes.append(("hangup", [chance.choice(waiting)], {}))
    verb, names, options = chance.choice(wishes)
    VERBS[verb](story, names, options)


@pytest.mark.parametrize("seed", range(60))
def test_the_group_keeps_its_invariants_and_every_request_is_answered(seed: int) -> None:
    chance = random.Random(seed)
    story = Story(initial_rebalance_delay=chance.choice([0.0, 3.0]), max_size=chance.choice([3, 100]))
    for _ in range(STEPS):
        step(story, chance)
    story.wait([str(LONG)], {})
    group = story.machine.groups.get("g")
    assert group is None or (not group.members and not group.pending)
    assert not story.alarms


@pytest.mark.parametrize("seed", range(20))
def test_a_restart_at_any_moment_restores_the_last_written_state(seed: int) -> None:
    chance = random.Random(1000 + seed)
    story = Story()
    for _ in range(STEPS):
        step(story, chance)
        again = Story()
        again.log = story.log
        again.restart([], {})
        kept, now = again.machine.groups.get("g"), story.machine.groups.get("g")
        assert again.machine.offsets.groups == story.machine.offsets.groups
        if now is not None and str(now.state) == "Stable":
            assert kept is not None
            assert kept.generation == now.generation
            assert {m.member_id: m.assignment for m in kept.members.values()} == {
                m.member_id: m.assignment for m in now.members.values()
            }
