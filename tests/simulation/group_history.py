"""A history of one group with random faults, and its invariants.

Faults come first and then stop. Within a bounded time after that, every remaining member must have an assignment, every
partition must be assigned, and every record must be read and committed.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from ottla.client.consumer.assignors.wire import decode_assignment
from ottla.client.consumer.coordinator.generation import Generation
from ottla.client.consumer.group.membership.classic_membership import ClassicMembership
from ottla.client.metadata.metadata_snapshot import KnownTopic, MetadataSnapshot
from ottla.coordination.groups.classic.decision import SKIP_ASSIGNMENT_VERSION
from ottla.coordination.groups.classic.group import ClassicGroup, ClassicGroupState
from ottla.coordination.groups.config import GroupConfig
from ottla.coordination.groups.consumer.group import ConsumerGroup
from ottla.coordination.groups.consumer.image import TopicImage, TopicMetadata
from ottla.model import PartitionInfo, TopicPartition
from tests.simulation.group_broker import GroupBroker
from tests.simulation.group_member import GroupMember
from tests.simulation.network import BROKER, Faults
from tests.simulation.world import World

STRATEGIES: tuple[tuple[str, ...], ...] = (
    ("range",),
    ("roundrobin",),
    ("sticky",),
    ("cooperative-sticky",),
    ("cooperative-sticky",),
    ("range", "cooperative-sticky"),
)
TOPICS = ("t", "u", "v")
PATIENCE = 180.0
"""Seconds without faults after which no member may be stuck: several times the longest timeout."""
Place = tuple[Generation, frozenset[TopicPartition]]


class Owners:
    """The partitions that each member considers its own, by generation."""

    def __init__(self, broker: GroupBroker) -> None:
        self._broker = broker
        self._owners: dict[tuple[int, int, TopicPartition], str] = {}
        self._last: dict[TopicPartition, str] = {}

    def change(self, name: str, before: Place | None, after: Place | None) -> None:
        """A member believes something else."""
        for key in [key for key, owner in self._owners.items() if owner == name]:
            del self._owners[key]
        if after is None:
            return
        generation = after[0].generation_id
        for tp in after[1]:
            other = self._owners.setdefault((self._broker.count, generation, tp), name)
            assert other == name, f"{tp} is {other}'s and {name}'s in generation {generation}"
        for tp in after[1]:
            if self._last.get(tp) != name:  # a member that regains a partition may commit its earlier reads
                self._last[tp] = name
                since = self._broker.owned_since
                since[tp] = max(generation, since.get(tp, 0))


class GroupHistory:
    """One group from its beginning to its end."""

    def __init__(self, seed: int, protocols: tuple[str, ...] = ("classic",)) -> None:
        self.protocols = protocols
        """The protocols; each member uses one of them."""
        self.world = world = World(seed)
        chance = world.chance
        self.size = chance.choice((2, 3, 3, 4, 5, 5, 8, 20)) if chance.random() < 0.3 else chance.choice((2, 3, 3, 4))
        self.strategy = chance.choice(STRATEGIES)
        self.style = chance.choice(("auto", "auto", "manual", "transactional"))
        self.static = chance.choice((0.0, 0.0, 0.3, 1.0))
        self.faults = Faults(
            breaks=chance.choice((0.0, 0.0, 0.02, 0.1)),
            repeats=chance.choice((0.0, 0.0, 0.1)),
            slow=chance.choice((0.0, 0.02, 0.2)),
        )
        config = GroupConfig(
            initial_rebalance_delay=chance.choice((0.0, 0.0, 3.0)),
            min_session_timeout_ms=1,
            consumer_session_timeout_ms=10_000,
            consumer_heartbeat_interval_ms=3_000,
        )
        self.broker = GroupBroker(world, config, chance.choice((5, 9)))
        self.owners = Owners(self.broker)
        self.counts = {topic: chance.randint(1, 4) for topic in TOPICS}
        self.cluster = MetadataSnapshot()
        self.ends: dict[TopicPartition, int] = {}
        self.seen: dict[TopicPartition, int] = {}
        """The positions that members have read to."""
        self.members: list[GroupMember] = []
        self.noisy = True
        """True while faults may occur."""
        self._names = 0
        self._producers = 0
        self._images = 0
        self._grow()

    def transcript(self) -> str:
        return self.world.transcript()

    def run(self) -> None:
        """Faults, then quiet."""
        world = self.world
        world.say("history", f"{self.size} members, {self.strategy}, {self.style}, static {self.static}, {self.faults}")
        for _ in range(self.size):
            world.after(world.chance.random() * 5, self._come)
        end = world.now + world.chance.choice((8.0, 15.0, 30.0))
        pace = 4.0 / self.size + 1.0
        while world.now < end:
            world.run_until(world.now + world.chance.expovariate(1 / pace))
            self._befall()
        self._calm_down()
        deadline = world.now + PATIENCE
        while (trouble := self.trouble()) and world.now < deadline:
            world.run_until(world.now + 1.0)
        assert not trouble, f"still not quiet: {trouble}"

    def next_producer_id(self) -> int:
        self._producers += 1
        return self._producers

    # What befalls it.

    def _befall(self) -> None:
        names, weights = zip(*FAULTS.items(), strict=True)
        self.world.chance.choices(names, weights)[0](self)

    def _come(self, instance: str | None = None) -> None:
        chance = self.world.chance
        if len([m for m in self.members if m.is_member]) >= self.size:
            return
        self._names += 1
        if instance is None and chance.random() < self.static:
            instance = f"i{chance.randrange(self.size)}"
        topics = frozenset(chance.sample(TOPICS, chance.choice((1, 1, 2))))
        protocol = chance.choice(self.protocols) if len(self.protocols) > 1 else self.protocols[0]
        by_pattern = protocol == "consumer" and chance.random() < 0.3
        member = GroupMember(
            self, f"c{self._names}", topics, self.strategy, instance, self.style, protocol, by_pattern=by_pattern
        )
        how = "by pattern" if by_pattern else "by name"
        self.world.say(member.name, f"comes, {protocol}, instance {instance}, for {sorted(topics)} {how}")
        self.members.append(member)

    def _some(self) -> GroupMember | None:
        there = [member for member in self.members if member.is_member]
        return self.world.chance.choice(there) if there else None

    def _crash_one(self) -> None:
        member = self._some()
        if member is not None:
            member.crash()
            if member.instance is not None and self.world.likely(0.7):
                self.world.after(self.world.chance.random() * 15, lambda: self._come(member.instance))

    def _freeze_one(self) -> None:
        member = self._some()
        if member is not None:
            member.freeze(self.world.chance.choice((0.5, 4.0, 11.0, 25.0)))

    def _busy_one(self) -> None:
        member = self._some()
        if member is not None:
            member.be_busy(self.world.chance.choice((2.0, 10.0, 20.0)))

    def _close_one(self) -> None:
        member = self._some()
        if member is not None:
            member.close()

    def _resubscribe_one(self) -> None:
        member, chance = self._some(), self.world.chance
        if member is None:
            return
        topics = frozenset(chance.sample(TOPICS, chance.choice((1, 2))))
        if chance.random() < 0.4:
            member.unsubscribe()
            self.world.after(chance.random() * 5, lambda: member.subscribe(topics))
        else:
            member.subscribe(topics)

    def _rejoin_one(self) -> None:
        member = self._some()
        if member is not None:
            member.rejoin()

    def _rewind_one(self) -> None:
        member = self._some()
        if member is not None and self.style != "transactional":
            member.rewind()

    def _crash_broker(self) -> None:
        chance = self.world.chance
        if self.broker.down:
            return
        torn = self.style != "transactional" and self.protocols == ("classic",) and chance.random() < 0.3
        lost = chance.randint(1, 3) if torn else 0
        downtime = chance.choice((0.01, 1.0, 14.0))
        self.broker.crash(lost, downtime)
        if lost:
            for member in self.members:
                if member.membership is not None and member.alive:
                    member.torn = member.membership.generation
                    member.see_what_it_believes()

    def _fail_append(self) -> None:
        if not self.broker.down:
            self.broker.fail_append()

    def _set_clock(self) -> None:
        step = self.world.chance.choice((-3_600_000, -5_000, 7_000, 86_400_000))
        self.world.say("broker", f"clock set by {step} ms")
        self.world.wall_offset_ms += step

    def _grow(self) -> None:
        """Add partitions and records to topics; members notice with their next metadata refresh."""
        chance = self.world.chance
        if self.ends and self.static and self.broker.join_version < SKIP_ASSIGNMENT_VERSION:
            return  # with older clients there is no leader after the return of a static leader, and added partitions go unnoticed
        if self.ends:
            # In the end all topics grow, so that members with one topic notice it.
            for topic in [chance.choice(TOPICS)] if self.noisy else TOPICS:
                self.grow(topic)
        else:
            self._publish()
        for member in self.members:
            self.world.after(chance.random() * 10, member.see_topics)

    def grow(self, topic: str) -> None:
        """A topic gets another partition."""
        self.counts[topic] += 1
        self._publish()

    def _publish(self) -> None:
        """Publish the metadata of the cluster, and add records to every partition."""
        topics = {
            name: KnownTopic(
                name,
                UUID(int=number + 1),
                False,
                tuple(PartitionInfo(name, i, 0, 0, (0,), (0,)) for i in range(self.counts[name])),
            )
            for number, name in enumerate(TOPICS)
        }
        self.world.say("topics", f"grow to {self.counts}")
        self.cluster = MetadataSnapshot(
            nodes={0: BROKER}, topics=topics, names={topic.topic_id: topic.name for topic in topics.values()}
        )
        self._images += 1
        image = [TopicMetadata(topic.name, topic.topic_id, len(topic.partitions)) for topic in topics.values()]
        self.broker.see_topics(TopicImage.of(self._images, image))
        for name, count in self.counts.items():
            for index in range(count):
                tp = TopicPartition(name, index)
                self.ends[tp] = self.ends.get(tp, 0) + self.world.chance.randint(5, 20)

    # Quiet.

    def _calm_down(self) -> None:
        self.world.say("history", "quiet from now on")
        self.noisy = False
        self.faults.calm()
        if self.static:
            # A returning static leader never gets the base of the assignment (KIP-814), so it notices growth
            # during its absence only at the next growth.
            self.world.after(30.0, self._grow)
        for member in self.members:
            member.frozen_until = min(member.frozen_until, self.world.now)
            member.busy_until = min(member.busy_until, self.world.now)
            member.wake("user")
            if member.thread is not None:
                member.wake("thread")

    def trouble(self) -> str:
        """Describe a violation once there are no faults."""
        if self.broker.down:
            return "the broker is down"
        if self.broker.open:
            return "a transaction is open"
        living = [member for member in self.members if member.is_member]
        instances = [member.instance for member in living if member.instance]
        if len(instances) != len(set(instances)):
            return "a fenced member has not heard of it"
        group = self.broker.group
        if not living:
            return (
                ""
                if group is None or str(group.state) == str(ClassicGroupState.EMPTY)
                else f"nobody is there, and the group is {group.state}"
            )
        if group is None or str(group.state) != str(ClassicGroupState.STABLE):
            return f"the group is {group and group.state}"
        return self._trouble_of_members(living) or self._trouble_of_offsets(living)

    def _trouble_of_members(self, living: list[GroupMember]) -> str:
        group = self.broker.group
        assert group is not None
        shared: dict[TopicPartition, str] = {}
        for member in living:
            membership = member.membership
            if membership is None or membership.state.value != "stable":
                return f"{member.name} is {membership and membership.state}"
            if isinstance(membership, ClassicMembership) and membership.should_prepare:
                return f"{member.name} must prepare"
            place, generation = membership.generation, generation_of(group)
            if place.generation_id != generation or place.member_id not in group.members:
                return f"{member.name} is in {place}, the group in {generation} with {list(group.members)}"
            given = self.given(place.member_id)
            if set(given) != set(member.subscriptions.assigned()):
                return f"{member.name} has {member.subscriptions.assigned()}, and was given {given}"
            for tp in given:
                if shared.setdefault(tp, member.name) != member.name:
                    return f"{tp} has two owners"
        if len(group.members) != len(living):
            return f"members {list(group.members)}, and {[member.name for member in living]} are there"
        wanted = {topic for member in living for topic in member.topics}
        missing = {tp for tp in self.ends if tp.topic in wanted}.difference(shared)
        return f"nobody has {missing}" if missing else ""

    def given(self, member_id: str) -> list[TopicPartition]:
        """Return the partitions that the coordinator assigned to a member."""
        group = self.broker.group
        assert group is not None
        if isinstance(group, ConsumerGroup):
            places = group.members[member_id].assigned
            return [TopicPartition(self.cluster.names[topic_id], number) for topic_id, number in places]
        return list(decode_assignment(group.members[member_id].assignment).partitions)

    def _trouble_of_offsets(self, living: list[GroupMember]) -> str:
        for member in living:
            for tp in member.subscriptions.assigned():
                position, committed = member.subscriptions.state(tp).position, self.broker.committed.get(tp)
                if not position == committed == self.ends[tp]:
                    return f"{tp} of {member.name}: read to {position}, committed {committed}, of {self.ends[tp]}"
        return ""


def generation_of(group: ClassicGroup | ConsumerGroup) -> int:
    """That of all members, once everything is quiet."""
    return group.epoch if isinstance(group, ConsumerGroup) else group.generation


FAULTS: dict[Callable[[GroupHistory], None], float] = {
    GroupHistory._come: 6,
    GroupHistory._crash_one: 3,
    GroupHistory._freeze_one: 3,
    GroupHistory._busy_one: 2,
    GroupHistory._close_one: 3,
    GroupHistory._resubscribe_one: 2,
    GroupHistory._rejoin_one: 1,
    GroupHistory._rewind_one: 0.5,
    GroupHistory._crash_broker: 2,
    GroupHistory._fail_append: 0.5,
    GroupHistory._set_clock: 0.5,
    GroupHistory._grow: 1,
}
"""The events, with their weights."""
