"""The cluster's metadata: features, topics and their configs, and how far producer ids are given away.

Decides and replays; draws no ids and reads no clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from ottla.coordination.cluster import config_change, elections, features, partition_request
from ottla.coordination.cluster.events import (
    ClusterBegun,
    ConfigsChanged,
    ConfigsReplaced,
    Event,
    FeaturesRequested,
    NodeStarted,
    PartitionsRequested,
    ProducerIdsRequested,
    TopicsRequested,
    TopicsUnwanted,
)
from ottla.coordination.cluster.records import (
    BROKER_RESOURCE,
    GROUP_RESOURCE,
    NO_LEADER,
    TOPIC_RESOURCE,
    ConfigRecord,
    FeatureLevelRecord,
    ForeignRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from ottla.coordination.cluster.topic import PartitionState, Topic
from ottla.coordination.cluster.topic_configs import settings_of
from ottla.coordination.cluster.topic_names import folded
from ottla.coordination.cluster.topic_request import (
    ANY_DIRECTORY,
    Refusal,
    accepted,
    check_name,
    configs_of,
    layout_of,
    records_of,
    refused,
)
from ottla.coordination.machine import Decision, Reply
from ottla.errors import ErrorCode
from ottla.protocol.messages.create_topics import CreatableTopic, CreatableTopicResult
from ottla.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicState
from ottla.protocol.schema import ZERO_UUID, Message

__all__ = ["ClusterMetadata", "PartitionState", "Topic"]


class ClusterMetadata:
    """Topics by name and by id."""

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}
        self.topics_version = 0
        """Grows whenever a topic comes, goes or gets partitions; it begins anew with the process."""
        self.features: dict[str, int] = {}
        """Levels of features by name."""
        self.brokers: dict[str, dict[str, str]] = {}
        """Settings of brokers that were changed at run time, by the broker's number; of all brokers under no name."""
        self.groups: Mapping[str, Mapping[str, str]] = {}
        """What groups set themselves; another object after each change."""
        self.next_producer_id = 0
        self.foreign: list[ForeignRecord] = []
        """What Kafka wrote and this broker does not act on, in order."""
        self._names: dict[UUID, str] = {}

    def topic_by_id(self, topic_id: UUID) -> Topic | None:
        """The topic with that id."""
        name = self._names.get(topic_id)
        return None if name is None else self.topics[name]

    def decide(self, event: Event, now: float) -> Decision[Message]:
        """What is to be written and answered."""
        match event:
            case TopicsRequested():
                return self._decide_creation(event)
            case TopicsUnwanted():
                return self._decide_deletion(event)
            case PartitionsRequested():
                return partition_request.decide(self.topics, event)
            case ConfigsChanged() | ConfigsReplaced():
                return config_change.decide(config_change.KnownConfigs(self.topics, self.brokers, self.groups), event)
            case ClusterBegun():
                return Decision(features.first_records(), (Reply(event.ticket, None),))
            case NodeStarted():
                won = elections.elections(self.topics.values(), event.node_id)
                return Decision(tuple(won), (Reply(event.ticket, None),))
            case FeaturesRequested():
                return features.decide(self.features, event)
            case ProducerIdsRequested():
                first = self.next_producer_id
                record = ProducerIdsRecord(broker_id=event.node_id, next_producer_id=first + event.count)
                return Decision((record,), (Reply(event.ticket, (first, event.count)),))

    def replay(self, record: Message) -> None:
        """Let a record of the log become state."""
        REPLAYS[type(record)](self, record)

    def records(self) -> Iterator[Message]:
        """What would make this state of an empty one: a snapshot."""
        for name, level in self.features.items():
            yield FeatureLevelRecord(name, level)
        for broker, configs in self.brokers.items():
            for name, value in configs.items():
                yield ConfigRecord(BROKER_RESOURCE, broker, name, value)
        for group, own in self.groups.items():
            for name, value in own.items():
                yield ConfigRecord(GROUP_RESOURCE, group, name, value)
        for topic in self.topics.values():
            yield TopicRecord(topic.name, topic.topic_id)
            for state in topic.partitions:
                yield state_record(topic.topic_id, state)
            for name, value in topic.configs.items():
                yield ConfigRecord(TOPIC_RESOURCE, topic.name, name, value)
        yield from self.foreign
        if self.next_producer_id:
            yield ProducerIdsRecord(next_producer_id=self.next_producer_id)

    def check(self) -> None:
        assert {topic.topic_id: name for name, topic in self.topics.items()} == self._names
        for name, topic in self.topics.items():
            assert topic.name == name
            assert [p.index for p in topic.partitions] == list(range(len(topic.partitions)))
            assert all(p.leader == NO_LEADER or p.leader in p.isr for p in topic.partitions)
            assert all(set(p.isr) <= set(p.replicas) for p in topic.partitions)

    def _decide_creation(self, event: TopicsRequested) -> Decision[Message]:
        records: list[Message] = []
        results: list[CreatableTopicResult] = []
        names = {folded(name): name for name in self.topics}
        wished = Counter(topic.name for topic in event.topics)
        for topic, topic_id in zip(event.topics, event.topic_ids, strict=True):
            try:
                if wished[topic.name] > 1:
                    raise Refusal(ErrorCode.INVALID_REQUEST, f"Topic '{topic.name}' is named twice in this request.")
                result, more = self._decide_topic(event, topic, topic_id, names)
            except Refusal as refusal:
                results.append(refused(topic, refusal))
            else:
                results.append(result)
                records += more
                names[folded(topic.name)] = topic.name
        return Decision(() if event.validate_only else tuple(records), (Reply(event.ticket, results),))

    def _decide_topic(
        self, event: TopicsRequested, topic: CreatableTopic, topic_id: UUID, names: dict[str, str]
    ) -> tuple[CreatableTopicResult, list[Message]]:
        check_name(topic, names)
        layout = layout_of(topic, event.node_id, event.default_partitions, event.default_replication)
        configs = configs_of(topic)
        # Nothing has that id yet when the topic is only looked at.
        shown_id = ZERO_UUID if event.validate_only else topic_id
        return (
            accepted(topic, shown_id, layout, settings_of(configs, event.broker_configs)),
            records_of(topic.name, topic_id, layout, configs, event.node_id),
        )

    def _decide_deletion(self, event: TopicsUnwanted) -> Decision[Message]:
        records: list[Message] = []
        results: list[DeletableTopicResult] = []
        found = [self._find(unwanted) for unwanted in event.topics]
        named = Counter(topic.topic_id for topic, _ in found if topic is not None)
        for unwanted, (topic, refusal) in zip(event.topics, found, strict=True):
            if topic is not None and named[topic.topic_id] > 1:
                # Whoever names a topic twice may have meant another one.
                refusal = Refusal(ErrorCode.INVALID_REQUEST, f"Topic '{topic.name}' is named twice in this request.")
            if topic is None or refusal is not None:
                results.append(not_deleted(unwanted, refusal))
            else:
                records.append(RemoveTopicRecord(topic.topic_id))
                results.append(DeletableTopicResult(name=topic.name, topic_id=topic.topic_id))
        return Decision(tuple(records), (Reply(event.ticket, results),))

    def _find(self, wanted: DeleteTopicState) -> tuple[Topic | None, Refusal | None]:
        """The topic that a request names by name or by id, or why there is none."""
        if (wanted.name is None) == (wanted.topic_id == ZERO_UUID):
            return None, Refusal(ErrorCode.INVALID_REQUEST, "A topic is named either by its name or by its id.")
        if wanted.name is not None:
            topic = self.topics.get(wanted.name)
            missing = Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{wanted.name}'.")
        else:
            topic = self.topic_by_id(wanted.topic_id)
            missing = Refusal(ErrorCode.UNKNOWN_TOPIC_ID, f"There is no topic with id {wanted.topic_id}.")
        return topic, None if topic else missing

    def _add_topic(self, record: TopicRecord) -> None:
        self.topics[record.name] = Topic(record.name, record.topic_id)
        self.topics_version += 1
        self._names[record.topic_id] = record.name

    def _add_partition(self, record: PartitionRecord) -> None:
        topic = self.topic_by_id(record.topic_id)
        if topic is None:
            return  # The record of the topic was damaged, and set aside.
        elr = tuple(record.eligible_leader_replicas or ())
        state = PartitionState(
            record.partition_id, record.leader, record.leader_epoch, tuple(record.replicas), tuple(record.isr), elr
        )
        self._put_partition(topic, state)

    def _change_partition(self, record: PartitionChangeRecord) -> None:
        topic = self.topic_by_id(record.topic_id)
        if topic is not None and record.partition_id < len(topic.partitions):
            self._put_partition(topic, elections.changed(topic.partitions[record.partition_id], record))

    def _put_partition(self, topic: Topic, state: PartitionState) -> None:
        # They come in order; a later record of a partition takes its place.
        before, after = topic.partitions[: state.index], topic.partitions[state.index + 1 :]
        self.topics[topic.name] = replace(topic, partitions=(*before, state, *after))
        self.topics_version += 1

    def _set_config(self, record: ConfigRecord) -> None:
        name, topic = record.resource_name, self.topics.get(record.resource_name)
        if record.resource_type == BROKER_RESOURCE:
            self.brokers[name] = changed(self.brokers.get(name, {}), record)
        elif record.resource_type == GROUP_RESOURCE:
            groups = {**self.groups, name: changed(self.groups.get(name, {}), record)}
            self.groups = {group: configs for group, configs in groups.items() if configs}
        elif record.resource_type == TOPIC_RESOURCE and topic is not None:
            self.topics[name] = replace(topic, configs=changed(topic.configs, record))

    def _remove_topic(self, record: RemoveTopicRecord) -> None:
        name = self._names.pop(record.topic_id, None)
        if name is not None:
            del self.topics[name]
            self.topics_version += 1

    def _set_feature(self, record: FeatureLevelRecord) -> None:
        self.features[record.name] = record.feature_level
        if not record.feature_level:
            del self.features[record.name]

    def _give_producer_ids(self, record: ProducerIdsRecord) -> None:
        self.next_producer_id = record.next_producer_id


REPLAYS: dict[type[Message], Callable[[ClusterMetadata, Any], None]] = {
    TopicRecord: ClusterMetadata._add_topic,
    PartitionRecord: ClusterMetadata._add_partition,
    PartitionChangeRecord: ClusterMetadata._change_partition,
    ForeignRecord: lambda machine, record: machine.foreign.append(record),
    ConfigRecord: ClusterMetadata._set_config,
    RemoveTopicRecord: ClusterMetadata._remove_topic,
    FeatureLevelRecord: ClusterMetadata._set_feature,
    ProducerIdsRecord: ClusterMetadata._give_producer_ids,
}


def changed(configs: Mapping[str, str], record: ConfigRecord) -> dict[str, str]:
    """Configs after one of them was set, or given back to its default."""
    others = {name: value for name, value in configs.items() if name != record.name}
    return others if record.value is None else {**others, record.name: record.value}


def state_record(topic_id: UUID, state: PartitionState) -> PartitionRecord:
    """A partition as it is."""
    return PartitionRecord(
        state.index,
        topic_id,
        replicas=state.replicas,
        isr=state.isr,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        partition_epoch=0,
        directories=[ANY_DIRECTORY] * len(state.replicas),
    )


def not_deleted(wanted: DeleteTopicState, refusal: Refusal | None) -> DeletableTopicResult:
    """The answer to a deletion that does not happen."""
    assert refusal is not None
    return DeletableTopicResult(
        name=wanted.name, topic_id=wanted.topic_id, error_code=refusal.code, error_message=str(refusal)
    )
