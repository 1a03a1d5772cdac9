"""Consumer groups under random events: no partition has two owners, and every member becomes stable in the end.

Members are correct clients: they revoke exactly the partitions that they must revoke.
Some freeze, some lose responses, some are killed, and the coordinator restarts at times.
"""

from __future__ import annotations

import random
from uuid import UUID

import pytest

from ottla.coordination.groups.consumer.member import TopicIdPartition
from ottla.errors import ErrorCode
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from tests.coordination.groups.consumer.story import Story

STEPS = 150
ROUNDS = 12
"""The number of heartbeats of every member within which an undisturbed group becomes stable."""
FENCED = {ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND}


class World(Story):
    """A coordinator, and clients that remember their responses."""

    def __init__(self, seed: int) -> None:
        super().__init__(consumer_session_timeout_ms=20_000)
        self.chance = random.Random(seed)
        self.clients: dict[str, Client] = {}
        self.heard: ConsumerGroupHeartbeatResponse | None = None
        self.count = 0
        self.epochs: dict[str, int] = {}
        self.change_topics()

    def compare_with_log(self) -> None:
        """Now and then: the log becomes long."""
        if len(self.askers) % 20 == 0:
            super().compare_with_log()

    def show_reply(self, message: object) -> str:
        self.heard = message if isinstance(message, ConsumerGroupHeartbeatResponse) else None
        return ""

    def ask(self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        self.heart(request.member_id, request)
        assert self.heard is not None
        return self.heard

    def change_topics(self) -> None:
        names = self.chance.sample("tuv", self.chance.randint(1, 3))
        self.topics([], {name: str(self.chance.randint(1, 5)) for name in sorted(names)})

    def step(self) -> None:
        """Run one random event."""
        wish = self.chance.random()
        running = list(self.clients.values())
        if wish < 0.12 and len(running) < 6:
            self.count += 1
            name = f"c{self.count}"
            self.clients[name] = Client(name, self.chance)
        elif wish < 0.16 and running:
            self.clients.pop(self.chance.choice(running).member_id)  # killed
        elif wish < 0.20 and running:
            client = self.clients.pop(self.chance.choice(running).member_id)
            self.ask(ConsumerGroupHeartbeatRequest("g", client.member_id, -1))
        elif wish < 0.24:
            self.change_topics()
        elif wish < 0.28:
            self.restart([], {})
        elif wish < 0.40:
            self.wait([str(self.chance.choice([1, 5, 30]))], {})
        elif wish < 0.44 and running:
            self.chance.choice(running).change_its_mind()
        elif running:
            self.chance.choice(running).beat(self, lose_answer=self.chance.random() < 0.15)
        self.check()

    def check(self) -> None:
        """Epochs never decrease, and the assignments that clients have do not overlap while they are members."""
        group = self.machine.consumers.groups.get("g")
        if group is None:
            return
        assert group.epoch >= self.epochs.get("g", 0)
        self.epochs["g"] = group.epoch
        held: dict[TopicIdPartition, str] = {}
        for client in self.clients.values():
            if client.member_id in group.members:
                for place in client.owned:
                    assert held.setdefault(place, client.member_id) == client.member_id, "two clients use a partition"

    def settle(self) -> None:
        for _ in range(ROUNDS):
            for client in self.clients.values():
                client.beat(self)
            self.check()


class Client:
    """The state of a client."""

    def __init__(self, member_id: str, chance: random.Random) -> None:
        self.member_id = member_id
        self.chance = chance
        self.epoch = 0
        self.owned: set[TopicIdPartition] = set()
        self.change_its_mind()

    def change_its_mind(self) -> None:
        """Read something else from now on."""
        self.names = sorted(self.chance.sample("tuv", self.chance.randint(0, 3)))
        self.regex = self.chance.choice(["", "", "t|u", "."])

    def beat(self, world: World, *, lose_answer: bool = False) -> None:
        """A heartbeat as clients send them: all of it, since the last answer may be lost."""
        if self.epoch == 0:
            self.owned = set()
        topics: dict[UUID, list[int]] = {}
        for topic_id, index in sorted(self.owned):
            topics.setdefault(topic_id, []).append(index)
        owned = [TopicPartitions(topic_id, indexes) for topic_id, indexes in topics.items()]
        request = ConsumerGroupHeartbeatRequest(
            "g", self.member_id, self.epoch, None, None, 30_000, self.names, self.regex, None, owned
        )
        answer = world.ask(request)
        if lose_answer:
            return
        if answer.error_code in FENCED:
            self.epoch, self.owned = 0, set()
            return
        assert not answer.error_code, answer
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = {
                (each.topic_id, index) for each in answer.assignment.topic_partitions for index in each.partitions
            }


@pytest.mark.parametrize("seed", range(40))
def test_no_partition_has_two_owners_and_every_member_becomes_stable(seed: int) -> None:
    world = World(seed)
    for _ in range(STEPS):
        world.step()
    world.wait(["100"], {})  # so that dead members time out
    world.settle()
    group = world.machine.consumers.groups.get("g")
    if not world.clients:
        assert group is None or not group.members
        return
    assert group is not None
    assert str(group.state) == "Stable"
    assert group.members.keys() == world.clients.keys()
    assert {member.epoch for member in group.members.values()} == {group.epoch}
    everything = {place for client in world.clients.values() for place in client.owned}
    count = sum(topic.partitions for topic in world.machine.consumers.image.known(group.names))
    assert len(everything) == count == sum(len(client.owned) for client in world.clients.values())


@pytest.mark.parametrize("seed", range(10))
def test_an_undisturbed_group_stays_stable(seed: int) -> None:
    world = World(seed)
    for _ in range(STEPS):
        world.step()
    world.settle()
    written = len(world.log)
    world.settle()
    assert len(world.log) == written
