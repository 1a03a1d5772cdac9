"""Groups in which members of both protocols join and leave: valid after each step, one owner per partition, stable in
the end.
"""

from __future__ import annotations

from typing import Any

import pytest

from ottla.coordination.groups.classic.group import ClassicGroupState
from ottla.coordination.groups.consumer.notes import GroupConverted
from ottla.errors import ErrorCode
from ottla.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, decode
from ottla.protocol.messages.join_group import JoinGroupResponse
from ottla.protocol.messages.sync_group import SyncGroupResponse
from tests.coordination.groups.consumer.test_chance import World

STEPS = 120
ROUNDS = 25
REJOIN = (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION)


class Mixed(World):
    """A coordinator, clients of both protocols, and answers that wait."""

    def __init__(self, seed: int) -> None:
        self.answers: dict[str, Any] = {}
        self.converted: list[str] = []
        super().__init__(seed)
        self.old: dict[str, Eager] = {}

    def carry_out(self, decision: Any) -> None:
        for reply in decision.replies:
            self.answers[self.askers[reply.ticket]] = reply.message
        self.converted += [note.kind for note in decision.notes if isinstance(note, GroupConverted)]
        super().carry_out(decision)

    def step(self) -> None:
        wish = self.chance.random()
        running = list(self.old.values())
        if wish < 0.1 and len(running) < 4:
            self.count += 1
            self.old[f"old{self.count}"] = Eager(f"old{self.count}")
        elif wish < 0.13 and running:
            self.old.pop(self.chance.choice(running).name)  # killed
        elif wish < 0.16 and running:
            client = self.old.pop(self.chance.choice(running).name)
            if client.member_id:
                self.do("leave", [client.member_id], {})
        elif wish < 0.6 and running:
            self.chance.choice(running).act(self)
        else:
            super().step()

    def check(self) -> None:
        """Check all but epochs: a group that was empty and then classic counts them from the start."""
        self.epochs.clear()
        super().check()

    def settle(self) -> None:
        for _ in range(ROUNDS):
            for old in self.old.values():
                old.act(self)
            for client in self.clients.values():
                client.beat(self)
            self.wait(["1"], {})


class Eager:
    """A classic client: it revokes everything before it joins, and leads if it is the leader."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.member_id = ""
        self.generation = -1
        self.waits = False
        self.owned: set[tuple[str, int]] = set()

    def act(self, world: Mixed) -> None:
        """Handle the responses; then join, fetch or send a heartbeat."""
        self.hear(world)
        if self.waits:
            return
        if self.generation < 0:
            self.ask(
                world,
                "join",
                [self.member_id] if self.member_id else ["a"],
                {"range": "t+u", "session": "20", "rebalance": "20"},
            )
        else:
            self.ask(world, "beat", [self.member_id], {"gen": str(self.generation)})

    def ask(self, world: Mixed, verb: str, names: list[str], options: dict[str, str]) -> None:
        before = len(world.askers)
        world.do(verb, names, options)
        world.askers[before + 1] = self.name if world.askers[before + 1] in names else world.askers[before + 1]
        found = world.answers.pop(names[0], None)
        if found is not None:
            world.answers[self.name] = found
        self.waits = True
        self.hear(world)

    def hear(self, world: Mixed) -> None:
        answer = world.answers.pop(self.name, None)
        if answer is None:
            return
        self.waits = False
        code = answer if isinstance(answer, int) else answer.error_code
        if code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
        elif code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id, self.generation, self.owned = "", -1, set()
        elif code in REJOIN:
            self.generation, self.owned = -1, set()
        elif isinstance(answer, JoinGroupResponse):
            self.member_id, self.generation = answer.member_id, answer.generation_id
            self.ask(world, "sync", [self.member_id], {"gen": str(self.generation), **shares(world, answer)})
        elif isinstance(answer, SyncGroupResponse):
            given = (
                decode(ConsumerProtocolAssignment, answer.assignment).assigned_partitions if answer.assignment else ()
            )
            self.owned = {(each.topic, index) for each in given for index in each.partitions}


def shares(world: Mixed, answer: JoinGroupResponse) -> dict[str, str]:
    """The assignment of a leader, by member id."""
    places = [f"{name}-{index}" for name in "tu" for index in range(world.topic_counts.get(name, 0))]
    members = [member.member_id for member in answer.members]
    return {member: ",".join(places[number :: len(members)]) for number, member in enumerate(members)}


def play(seed: int) -> Mixed:
    world = Mixed(seed)
    for _ in range(STEPS):
        world.step()
    world.wait(["100"], {})  # so that dead members time out
    for old in world.old.values():
        old.waits = False  # removed members send a new request
    world.settle()
    return world


@pytest.mark.parametrize("seed", range(30))
def test_both_kinds_of_members_settle_with_one_owner_for_each_partition(seed: int) -> None:
    world = play(seed)
    group = world.machine.consumers.groups.get("g")
    if world.clients:
        assert group is not None
        assert str(group.state) == "Stable", world.shown_now()
        assert len(group.members) == len(world.clients) + len(world.old)
        named = {world.shown_place(place) for client in world.clients.values() for place in client.owned}
        held = [f"{name}-{index}" for old in world.old.values() for name, index in old.owned]
        assert len(held) == len(set(held))
        assert named.isdisjoint(held)
        wanted = sum(topic.partitions for topic in world.machine.consumers.image.known(group.names))
        assert len(named) + len(held) == wanted
    elif world.old:
        assert group is None, "nobody of the newer protocol is left"
        assert world.group.state is ClassicGroupState.STABLE, world.shown_now()
        assert len(world.group.members) == len(world.old)


def test_groups_were_upgraded_and_downgraded() -> None:
    """The histories above are worth something only if they get that far."""
    worlds = [play(seed) for seed in range(8)]
    assert {"consumer", "classic"} <= {kind for world in worlds for kind in world.converted}
    assert any(world.clients and world.old for world in worlds)
