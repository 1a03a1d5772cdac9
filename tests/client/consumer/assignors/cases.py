"""Groups for assignors: random ones, their text form for Java's assignors, and the stored goldens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random

from ottla.client.consumer.assignors import Assignor, Subscription
from ottla.client.consumer.assignors.sticky import user_data
from ottla.client.metadata.metadata_snapshot import MetadataSnapshot
from ottla.model import TopicPartition
from tests.client.consumer.assignors.clusters import Shares, cluster_of, shares_of

RACKS = ("a", "b", "c")


@dataclass
class Case:
    """One group before a rebalance."""

    assignor: str
    nodes: dict[int, str | None] = field(default_factory=dict)
    """Racks by node id."""
    topics: dict[str, list[list[int]]] = field(default_factory=dict)
    """The nodes that hold each partition of a topic."""
    members: dict[str, Subscription] = field(default_factory=dict)

    def cluster(self) -> MetadataSnapshot:
        return cluster_of(self.topics, self.nodes)

    def shares(self, assignor: Assignor) -> Shares:
        return shares_of(assignor.assign(self.cluster(), self.members))

    def lines(self) -> list[str]:
        """The case as `Assign.java` reads it."""
        nodes = [f"node\t{node}\t{rack or '-'}" for node, rack in self.nodes.items()]
        topics = [
            f"topic\t{name}\t{';'.join(','.join(map(str, held)) or '-' for held in partitions) or '-'}"
            for name, partitions in self.topics.items()
        ]
        members = [member_line(member, subscription) for member, subscription in self.members.items()]
        return [*nodes, *topics, *members, f"run\t{self.assignor}"]


def member_line(member: str, subscription: Subscription) -> str:
    data = subscription.user_data
    words = (
        "member",
        member,
        subscription.group_instance_id or "-",
        subscription.rack_id or "-",
        str(subscription.generation_id),
        ",".join(subscription.topics) or "-",
        ",".join(f"{tp.topic}:{tp.partition}" for tp in subscription.owned_partitions) or "-",
        "-" if data is None else data.hex(),
    )
    return "\t".join(words)


def parse(lines: Sequence[str]) -> Case:
    """The reverse of `Case.lines`."""
    case = Case(lines[-1].split("\t")[1])
    for words in (line.split("\t") for line in lines[:-1]):
        match words:
            case ["node", node, rack]:
                case.nodes[int(node)] = None if rack == "-" else rack
            case ["topic", name, partitions]:
                case.topics[name] = [
                    [] if held == "-" else list(map(int, held.split(","))) for held in listed(partitions, ";")
                ]
            case ["member", member, instance, rack, generation, topics, owned, data]:
                case.members[member] = Subscription(
                    topics=listed(topics),
                    user_data=None if data == "-" else bytes.fromhex(data),
                    owned_partitions=[partition(text) for text in listed(owned)],
                    generation_id=int(generation),
                    rack_id=None if rack == "-" else rack,
                    group_instance_id=None if instance == "-" else instance,
                )
    return case


def listed(text: str, separator: str = ",") -> list[str]:
    return [] if text == "-" else text.split(separator)


def partition(text: str) -> TopicPartition:
    topic, _, number = text.rpartition(":")
    return TopicPartition(topic, int(number))


def read_shares(line: str) -> Shares:
    """The line that `Assign.java` answers."""
    reported = dict(part.split("=") for part in line.split(";"))
    return {
        member: frozenset(map(partition, words.split(","))) if words else frozenset()
        for member, words in reported.items()
    }


def format_shares(shares: Shares) -> str:
    """Return the output format of `Assign.java`, with partitions in order."""
    return ";".join(
        f"{member}={','.join(f'{tp.topic}:{tp.partition}' for tp in sorted(shares[member]))}"
        for member in sorted(shares)
    )


def random_case(assignor: str, chance: Random, scale: int = 1) -> Case:
    """A group of up to 13 members, times `scale`, that may just have changed."""
    racks = RACKS[: chance.choice([1, 2, 3, 3])] if chance.random() < 0.5 else ()
    nodes: dict[int, str | None] = {
        n: chance.choice(racks) if racks and chance.random() < 0.95 else None for n in range(4)
    }
    usual = chance.randrange(1, 7 * scale)
    topics = {
        f"t{n}": [
            chance.sample(range(4), chance.choice([1, 2, 3, 4]))
            for _ in range(usual if chance.random() < 0.6 else chance.randrange(10 * scale))
        ]
        for n in range(chance.randrange(1, 6))
    }
    names = [*topics, "unknown"] if chance.random() < 0.1 else [*topics]
    alike = chance.random() < 0.6
    everybody = chance.sample(names, chance.randrange(1, len(names) + 1))
    case = Case(assignor, nodes, topics)
    for member in chance.sample(range(1000), chance.randrange(1, 14 * scale)):
        wanted = everybody if alike else chance.sample(names, chance.randrange(1, len(names) + 1))
        case.members[f"consumer-{member}-{chance.randrange(16**6):06x}"] = Subscription(
            topics=chance.sample(wanted, len(wanted)),
            rack_id=chance.choice(RACKS) if racks and chance.random() < 0.9 else None,
            group_instance_id=f"static-{member}" if chance.random() < 0.2 else None,
        )
    return with_history(case, chance) if chance.random() < 0.75 else case


def with_history(case: Case, chance: Random) -> Case:
    """The same with owned partitions, some of an earlier generation or not valid any more."""
    generation = chance.randrange(1, 9)
    partitions = [TopicPartition(name, n) for name, held in case.topics.items() for n in range(len(held))]
    free = dict.fromkeys(partitions)
    doubled = chance.random() < 0.2
    for member, subscription in list(case.members.items()):
        if chance.random() < 0.15:
            continue
        may = [tp for tp in free if tp.topic in subscription.topics]
        owned = chance.sample(may, min(len(may), chance.choice([0, 1, 2, 3, 5, 9])))
        if not doubled:
            for tp in owned:
                del free[tp]
        since = generation - chance.choice([0, 0, 0, 1, 2]) if chance.random() < 0.3 else generation
        sticky = case.assignor == "sticky"
        case.members[member] = replace(
            subscription,
            user_data=user_data(owned, since) if sticky else None,
            owned_partitions=() if sticky else owned,
            generation_id=since,
        )
    return case
