"""The topics of a Kafka Streams application: which exist, which have to be created, and with how many partitions (KIP-1071).

A topology is a list of subtopologies. Each reads source topics and repartition topics, writes repartition topics, and keeps its state
in changelog topics. It has as many tasks as the largest of the topics that it reads has partitions. The application names the internal
topics, the coordinator determines their numbers of partitions:

1. A repartition topic has the number that the application sets. Without one, it gets the largest number of the topics that its
   writers read. This is repeated until all are known, as repartition topics can be chained.
2. Topics of a copartition group have the same number. Repartition topics without a number of their own get that of the group's other topics.
3. A changelog has a partition for each task.

An existing internal topic with another number is an error; the coordinator never adds partitions, because that would separate keys from
their state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum

from msgspec import Struct

from ottla.coordination.groups.consumer.image import TopicImage
from ottla.coordination.groups.streams.records import (
    StreamsGroupTopologyValue,
    Subtopology,
    TopicConfig,
    TopicInfo,
)
from ottla.errors import ErrorCode
from ottla.protocol.messages import streams_group_heartbeat as heartbeat
from ottla.protocol.messages.streams_group_heartbeat import CopartitionGroup

MOST_NAMES = 10
"""The number of topics that a message names."""


class StatusCode(IntEnum):
    """The conditions of a group that members are informed of, by Kafka's numbers."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
    MISSING_CLIENT_TAGS = 6


class InternalTopic(Struct, frozen=True):
    """An internal topic with its number of partitions."""

    name: str
    partitions: int
    replication_factor: int
    """0 for the broker's default."""
    configs: Mapping[str, str]


class ConfiguredSubtopology(Struct, frozen=True):
    """A subtopology with the numbers of tasks and partitions."""

    subtopology_id: str
    task_count: int
    source_topics: Sequence[str]
    repartition_sink_topics: Sequence[str]
    repartition_source_topics: Sequence[InternalTopic]
    changelog_topics: Sequence[InternalTopic]

    @property
    def is_stateful(self) -> bool:
        return bool(self.changelog_topics)

    @property
    def read_topics(self) -> list[str]:
        """The topics that its active tasks read."""
        return [*self.source_topics, *(each.name for each in self.repartition_source_topics)]


class ConfiguredTopology(Struct, frozen=True):
    """The result of `configure_topology`."""

    epoch: int
    subtopologies: Mapping[str, ConfiguredSubtopology]
    """By id, in order; empty if the topics are missing or wrong."""
    missing: Sequence[InternalTopic] = ()
    """The internal topics to create."""
    status: StatusCode | None = None
    """The reason for which no task can run; None if all topics are there."""
    detail: str = ""

    @property
    def is_ready(self) -> bool:
        return self.status is None


class TopologyFault(Exception):
    """The topics of the cluster do not fit to the topology."""

    def __init__(self, status: StatusCode, text: str) -> None:
        super().__init__(text)
        self.status = status


def stored_topology(sent: heartbeat.Topology) -> StreamsGroupTopologyValue:
    """Return the record of a topology that a member sent, with its subtopologies in order."""
    return StreamsGroupTopologyValue(
        sent.epoch,
        [stored_subtopology(each) for each in sorted(sent.subtopologies, key=lambda each: each.subtopology_id)],
    )


def stored_subtopology(sent: heartbeat.Subtopology) -> Subtopology:
    return Subtopology(
        sent.subtopology_id,
        list(sent.source_topics),
        list(sent.source_topic_regex),
        [stored_topic(each) for each in sent.state_changelog_topics],
        list(sent.repartition_sink_topics),
        [stored_topic(each) for each in sent.repartition_source_topics],
        [
            CopartitionGroup(
                list(each.source_topics), list(each.source_topic_regex), list(each.repartition_source_topics)
            )
            for each in sent.copartition_groups
        ],
    )


def stored_topic(sent: heartbeat.TopicInfo) -> TopicInfo:
    return TopicInfo(
        sent.name,
        sent.partitions,
        sent.replication_factor,
        [TopicConfig(each.key, each.value) for each in sorted(sent.topic_configs, key=lambda each: each.key)],
    )


def comparable(topology: StreamsGroupTopologyValue) -> object:
    """Return a value that is equal for topologies that differ only in the order of their lists."""

    def topics(infos: Iterable[TopicInfo]) -> Sequence[object]:
        return sorted(
            (each.name, each.partitions, each.replication_factor, sorted((one.key, one.value) for one in each.topic_configs))
            for each in infos
        )  # fmt: skip

    return topology.epoch, [
        (
            each.subtopology_id,
            sorted(each.source_topics),
            sorted(each.source_topic_regex),
            topics(each.state_changelog_topics),
            sorted(each.repartition_sink_topics),
            topics(each.repartition_source_topics),
            sorted(sorted(group) for group in copartition_groups(each)),
        )
        for each in topology.subtopologies
    ]


def find_topology_fault(topology: heartbeat.Topology) -> tuple[ErrorCode, str] | None:
    """Return the error of a topology that cannot be valid; None if there is none."""
    for each in topology.subtopologies:
        if each.source_topic_regex:
            text = f"subtopology {each.subtopology_id} reads topics by a regular expression: name its topics"
            return ErrorCode.INVALID_REQUEST, text
        if not (each.source_topics or each.repartition_source_topics):
            return ErrorCode.STREAMS_INVALID_TOPOLOGY, f"subtopology {each.subtopology_id} reads no topic"
        for topic in each.state_changelog_topics:
            if topic.partitions:
                text = f"changelog topic {topic.name} has {topic.partitions} partitions: leave the number to the broker"
                return ErrorCode.STREAMS_INVALID_TOPOLOGY, text
        for group in each.copartition_groups:
            pairs = (
                (group.source_topics, each.source_topics),
                (group.repartition_source_topics, each.repartition_source_topics),
            )
            if any(not 0 <= index < len(topics) for indexes, topics in pairs for index in indexes):
                text = f"a copartition group of subtopology {each.subtopology_id} refers to a topic that is not in it"
                return ErrorCode.STREAMS_INVALID_TOPOLOGY, text
    return None


def topic_names(topology: heartbeat.Topology) -> list[str]:
    """Return all topics that a topology names, each once."""
    names = [
        name
        for each in topology.subtopologies
        for name in (
            *each.source_topics,
            *each.repartition_sink_topics,
            *(topic.name for topic in each.repartition_source_topics),
            *(topic.name for topic in each.state_changelog_topics),
        )
    ]
    return list(dict.fromkeys(names))


def source_topics(topology: StreamsGroupTopologyValue) -> dict[str, str]:
    """Return the topics that tasks read, each with the id of its subtopology."""
    return {
        name: each.subtopology_id
        for each in topology.subtopologies
        for name in (*each.source_topics, *(topic.name for topic in each.repartition_source_topics))
    }


def required_topics(topology: StreamsGroupTopologyValue) -> frozenset[str]:
    """Return the topics on which an assignment depends."""
    changelogs = (topic.name for each in topology.subtopologies for topic in each.state_changelog_topics)
    return frozenset((*source_topics(topology), *changelogs))


def configure_topology(topology: StreamsGroupTopologyValue, image: TopicImage) -> ConfiguredTopology:
    """Return the topology with numbers of tasks and partitions, by the topics of the cluster."""
    try:
        ensure_sources(topology, image)
        counts = decide_partition_counts(topology, image)
        subtopologies = {
            each.subtopology_id: configured_subtopology(each, counts)
            for each in sorted(topology.subtopologies, key=lambda each: each.subtopology_id)
        }
        missing = find_missing_topics(subtopologies.values(), image)
    except TopologyFault as fault:
        return ConfiguredTopology(topology.epoch, {}, (), fault.status, str(fault))
    if missing:
        text = f"internal topics do not exist yet: {name_topics(each.name for each in missing)}"
        return ConfiguredTopology(topology.epoch, subtopologies, missing, StatusCode.MISSING_INTERNAL_TOPICS, text)
    return ConfiguredTopology(topology.epoch, subtopologies)


def ensure_sources(topology: StreamsGroupTopologyValue, image: TopicImage) -> None:
    missing = {name for each in topology.subtopologies for name in each.source_topics if name not in image.topics}
    internal = {topic.name for each in topology.subtopologies for topic in each.repartition_source_topics}
    if missing - internal:
        text = f"source topics do not exist: {name_topics(missing - internal)}"
        raise TopologyFault(StatusCode.MISSING_SOURCE_TOPICS, text)


def decide_partition_counts(topology: StreamsGroupTopologyValue, image: TopicImage) -> dict[str, int]:
    """Return the number of partitions of each topic of a topology. Raise TopologyFault if they contradict each other."""
    counts = {
        name: image.topics[name].partitions for each in topology.subtopologies for name in each.source_topics if name in image.topics
    }  # fmt: skip
    repartition = {topic.name: topic for each in topology.subtopologies for topic in each.repartition_source_topics}
    counts.update({name: topic.partitions for name, topic in repartition.items() if topic.partitions})
    decide_repartition_counts(topology, repartition, counts)
    for each in topology.subtopologies:
        for group in copartition_groups(each):
            counts.update(copartitioned(group, repartition, counts))
    for each in topology.subtopologies:
        most = max(counts[name] for name in read_topics(each))
        counts.update({topic.name: most for topic in each.state_changelog_topics if topic.name not in counts})
    return counts


def decide_repartition_counts(
    topology: StreamsGroupTopologyValue, repartition: Mapping[str, TopicInfo], counts: dict[str, int]
) -> None:
    """Add the numbers of the repartition topics for which the application sets none."""
    open_ = {name for name, topic in repartition.items() if not topic.partitions}
    writers = {
        name: [each for each in topology.subtopologies if name in each.repartition_sink_topics] for name in open_
    }
    for name in sorted(open_):
        if not writers[name]:
            text = f"no subtopology writes repartition topic {name}, so its number of partitions is not known"
            raise TopologyFault(StatusCode.MISSING_SOURCE_TOPICS, text)
    while open_:
        read = {name: {each for writer in writers[name] for each in read_topics(writer)} for name in open_}
        # A topic with an unknown number waits for it. In a cycle some have to be decided without the others.
        known = {name for name in open_ if read[name] <= counts.keys()} or {
            name for name in open_ if read[name] & counts.keys()
        }
        if not known:
            text = f"repartition topics depend only on each other: {name_topics(open_)}"
            raise TopologyFault(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, text)
        counts.update({name: max(counts[each] for each in read[name] & counts.keys()) for name in known})
        open_ -= known


def copartitioned(
    group: Iterable[str], repartition: Mapping[str, TopicInfo], counts: Mapping[str, int]
) -> dict[str, int]:
    """Return the numbers of a copartition group's repartition topics. Raise TopologyFault if the group has more than one number."""
    names = sorted(group)
    if not names:
        return {}
    external = [name for name in names if name not in repartition]
    fixed = [name for name in names if name in repartition and repartition[name].partitions]
    deciding = external or fixed or names
    numbers = {counts[name] for name in deciding}
    if deciding is not names and len(numbers) > 1:
        listed = ", ".join(f"{name} {counts[name]}" for name in deciding)
        text = f"topics that are joined have different numbers of partitions: {listed}"
        raise TopologyFault(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, text)
    number = max(numbers)
    for name in fixed:
        if counts[name] != number:
            text = f"repartition topic {name} has {counts[name]} partitions, the topics joined with it have {number}"
            raise TopologyFault(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, text)
    return {name: number for name in names if name in repartition}


def read_topics(subtopology: Subtopology) -> list[str]:
    return [*subtopology.source_topics, *(topic.name for topic in subtopology.repartition_source_topics)]


def copartition_groups(subtopology: Subtopology) -> list[set[str]]:
    """Return the copartition groups as sets of topics."""
    return [
        {subtopology.source_topics[index] for index in group.source_topics}
        | {subtopology.repartition_source_topics[index].name for index in group.repartition_source_topics}
        for group in subtopology.copartition_groups
    ]


def configured_subtopology(subtopology: Subtopology, counts: Mapping[str, int]) -> ConfiguredSubtopology:
    def configured(topic: TopicInfo) -> InternalTopic:
        configs = {each.key: each.value for each in topic.topic_configs}
        return InternalTopic(topic.name, counts[topic.name], topic.replication_factor, configs)

    return ConfiguredSubtopology(
        subtopology.subtopology_id,
        max(counts[name] for name in read_topics(subtopology)),
        sorted(subtopology.source_topics),
        sorted(subtopology.repartition_sink_topics),
        [configured(topic) for topic in subtopology.repartition_source_topics],
        [configured(topic) for topic in subtopology.state_changelog_topics],
    )


def find_missing_topics(subtopologies: Iterable[ConfiguredSubtopology], image: TopicImage) -> list[InternalTopic]:
    """Return the internal topics that do not exist. Raise TopologyFault if one exists with another number of partitions."""
    wanted = {
        topic.name: topic for each in subtopologies for topic in (*each.repartition_source_topics, *each.changelog_topics)
    }  # fmt: skip
    for name, topic in sorted(wanted.items()):
        found = image.topics.get(name)
        if found is not None and found.partitions != topic.partitions:
            text = f"topic {name} has {found.partitions} partitions, the application needs {topic.partitions}"
            raise TopologyFault(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, text)
    return [topic for name, topic in sorted(wanted.items()) if name not in image.topics]


def name_topics(names: Iterable[str]) -> str:
    """Return names for a message: the first ones, and the number of the others."""
    ordered = sorted(names)
    more = f" and {len(ordered) - MOST_NAMES} more" if len(ordered) > MOST_NAMES else ""
    return ", ".join(ordered[:MOST_NAMES]) + more
