"""Making and deleting topics: the cluster's metadata decides, the partitions follow.

What is answered is already true: a topic can be used as soon as its creation is acknowledged.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ottla.broker.cluster.own_topics import CONSUMER_OFFSETS, TRANSACTION_STATE, compacted, in_cluster
from ottla.broker.fetching.waiting import Waiting
from ottla.broker.machines.runtime import Runtime
from ottla.broker.partitions.partitions import CLUSTER_METADATA, Partitions
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.dynamic_config import Settings
from ottla.broker.settings.listener_settings import PREFIX
from ottla.coordination.cluster.events import (
    ConfigsChanged,
    ConfigsReplaced,
    PartitionsRequested,
    TopicsRequested,
    TopicsUnwanted,
)
from ottla.coordination.cluster.group_configs import in_force
from ottla.coordination.cluster.metadata import ClusterMetadata, Topic
from ottla.coordination.cluster.records import BROKER_RESOURCE, TOPIC_RESOURCE, ConfigRecord, RemoveTopicRecord
from ottla.coordination.cluster.topic_names import fault_of
from ottla.coordination.cluster.topic_request import MOST_PARTITIONS, Refusal
from ottla.errors import ConfigError, ErrorCode, KafkaError
from ottla.escaping import escape_controls
from ottla.java_hash import positive_java_hash
from ottla.model import TopicPartition
from ottla.protocol.messages import alter_configs, incremental_alter_configs
from ottla.protocol.messages.create_partitions import CreatePartitionsTopic, CreatePartitionsTopicResult
from ottla.protocol.messages.create_topics import CreatableTopic, CreatableTopicResult
from ottla.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicState
from ottla.protocol.schema import Message

if TYPE_CHECKING:
    from ottla.coordination.groups.consumer.image import TopicImage

log = logging.getLogger(__name__)
R = TypeVar("R")
MADE_TOGETHER = 1_000
"""Topics that a client has only named, and that one change of the metadata makes."""
RESERVED = {CLUSTER_METADATA, "__share_group_state"}
"""Names that a broker keeps for itself, and that this one does not show, or does not have yet."""


class Topics:
    """The topics of this cluster and what may be done to them."""

    def __init__(
        self, config: BrokerConfig, cluster: Runtime[ClusterMetadata], partitions: Partitions, waiting: Waiting
    ) -> None:
        self._given = config
        self._config = config
        self._cluster = cluster
        self._partitions = partitions
        self._waiting = waiting
        self._image: TopicImage | None = None
        self._imaged: ClusterMetadata | None = None
        self._group_settings: Mapping[str, Mapping[str, int]] = {}
        self._group_configs: Mapping[str, Mapping[str, str]] | None = None
        self.on_new: Callable[[Iterable[Topic]], None] = lambda topics: None
        """Told of topics that were made, or have grown, before anything is written to what is new."""
        self._configured: list[Callable[[BrokerConfig], object]] = []
        self.check_settings: Callable[[BrokerConfig], None] = lambda config: None
        """Raises ConfigError for settings that whoever acts by them cannot take up."""
        self._configure()

    @property
    def config(self) -> BrokerConfig:
        """The broker's settings of now."""
        return self._config

    def on_configured(self, act: Callable[[BrokerConfig], object]) -> None:
        """Have `act` called with the broker's settings, now and whenever they change."""
        self._configured.append(act)
        act(self._config)

    @property
    def settings(self) -> Settings:
        """The broker's settings, with what was changed of them at run time."""
        return Settings(self._given, self._cluster.machine.brokers)

    def all(self) -> Iterable[Topic]:
        return self._cluster.machine.topics.values()

    def image(self) -> TopicImage:
        """All of them as groups are told them; the same object until one comes, goes or grows."""
        machine = self._cluster.machine
        if self._image is None or self._image.version != machine.topics_version or self._imaged is not machine:
            from ottla.coordination.groups.consumer import image  # only where there are groups: it takes long to load

            topics = (
                image.TopicMetadata(each.name, each.topic_id, len(each.partitions)) for each in machine.topics.values()
            )
            self._image, self._imaged = image.TopicImage.of(machine.topics_version, topics), machine
        return self._image

    @property
    def group_configs(self) -> Mapping[str, Mapping[str, str]]:
        """What groups set themselves, by their names."""
        return self._cluster.machine.groups

    @property
    def subscriptions(self) -> Mapping[str, Mapping[str, str]]:
        """Those to metrics of clients, by their names; the same object until one changes."""
        return self._cluster.machine.subscriptions

    def group_settings(self) -> Mapping[str, Mapping[str, int]]:
        """What such groups go by, as the coordinator names it; the same object until something of it changes."""
        configs, bounds = self.group_configs, self._config.group_bounds()
        if self._group_configs is not configs:
            self._group_configs = configs
            self._group_settings = {
                group: {name.replace(".", "_"): value for name, value in in_force(own, bounds).items()}
                for group, own in configs.items()
            }
        return self._group_settings

    def named(self, name: str) -> Topic | None:
        """The topic of that name."""
        return self._cluster.machine.topics.get(name)

    def configs_of(self, name: str) -> Mapping[str, str]:
        """What was set for a topic itself; nothing where there is none."""
        topic = self.named(name)
        return {} if topic is None else topic.configs

    def leader_of(self, place: TopicPartition) -> int | None:
        """Who leads a partition, -1 where nobody does; None where there is no such partition."""
        topic = self.named(place.topic)
        if topic is None or not 0 <= place.partition < len(topic.partitions):
            return None
        return topic.partitions[place.partition].leader

    def has(self, name: str, index: int) -> bool:
        """Whether there is that partition, whoever leads it."""
        return self.leader_of(TopicPartition(name, index)) is not None

    def with_id(self, topic_id: uuid.UUID) -> Topic | None:
        """The topic with that id."""
        return self._cluster.machine.topic_by_id(topic_id)

    def absent_code(self, name: str, index: int) -> ErrorCode:
        """What is said of a partition that is not on this broker: others may have it."""
        topic = self.named(name)
        if topic is None or not 0 <= index < len(topic.partitions):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

    def name_error(self, name: str) -> int:
        """Why no topic of that name can be made; NONE where one can."""
        return ErrorCode.INVALID_TOPIC_EXCEPTION if name in RESERVED or fault_of(name) else ErrorCode.NONE

    def create(self, wanted: Sequence[CreatableTopic], *, validate_only: bool = False) -> list[CreatableTopicResult]:
        """Make topics, or only say whether they could be made; one result each.

        KafkaError(POLICY_VIOLATION) where they have more partitions together than one request may make.
        """
        ensure_few_partitions(max(len(each.assignments) or each.num_partitions, 1) for each in wanted)
        refusals = {topic.name: refusal for topic in wanted if (refusal := self._refusal(topic)) is not None}
        refused = [refusals[topic.name] for topic in wanted if topic.name in refusals]
        allowed = [topic for topic in wanted if topic.name not in refusals]
        self._partitions.ensure_room(sum(min(max(topic.num_partitions, 1), MOST_PARTITIONS) for topic in allowed))
        results = self._ask(lambda ticket: self._request(ticket, allowed, validate_only)) if allowed else []
        if not validate_only:
            for result in results:
                topic = None if result.error_code else self.named(result.name)
                if topic is not None:
                    self.on_new([topic])
                    self._partitions.add(self.named(topic.name) or topic)
        return [*results, *refused]

    def ensure(self, name: str) -> Topic | CreatableTopicResult:
        """The topic of that name, made with the broker's defaults where it is not there; else why it cannot be."""
        topic = self.named(name)
        if topic is not None:
            return topic
        try:
            (result,) = self.create([self._by_default(name)])
        except KafkaError as error:
            return CreatableTopicResult(name=name, error_code=error.code, error_message=str(error))
        return self.named(name) or result

    def ensure_all(self, names: Sequence[str]) -> dict[str, Topic | CreatableTopicResult]:
        """The same for many: those that are missing are made together, by one change of the metadata."""
        missing = [name for name in dict.fromkeys(names) if self.named(name) is None]
        made: dict[str, CreatableTopicResult] = {}
        for first in range(0, len(missing), MADE_TOGETHER):
            some = missing[first : first + MADE_TOGETHER]
            try:
                results = self.create([self._by_default(name) for name in some])
            except KafkaError as error:
                results = [CreatableTopicResult(name, error_code=error.code, error_message=str(error)) for name in some]
            made |= {each.name: each for each in results}
        return {name: self.named(name) or made[name] for name in names}

    def grow(
        self, wanted: Sequence[CreatePartitionsTopic], *, validate_only: bool = False
    ) -> list[CreatePartitionsTopicResult]:
        """Give topics more partitions, or only say whether they could have them; one result each."""
        known = {each.name: topic for each in wanted if (topic := self.named(each.name)) is not None}
        ensure_few_partitions(each.count - len(known[each.name].partitions) for each in wanted if each.name in known)
        self._partitions.ensure_room(len(wanted))
        for each in wanted:
            topic = self.named(each.name)
            if topic is not None:
                self._partitions.ensure_vacant(span(each.name, len(topic.partitions), each.count))
        results: list[CreatePartitionsTopicResult] = self._ask(
            lambda ticket: PartitionsRequested(ticket, tuple(wanted), self._config.node_id, validate_only)
        )
        if not validate_only:
            grown = [result.name for result in results if not result.error_code]
            self.on_new([self._cluster.machine.topics[name] for name in grown])
            self._take_up(grown)
        return results

    def change_configs(
        self, wanted: Sequence[incremental_alter_configs.AlterConfigsResource], *, validate_only: bool = False
    ) -> list[Refusal | None]:
        """Change some configs of topics, groups or of the broker, in force at once; for each None, or why it was not changed."""
        defaults, node_id = self._config.changed_topic_defaults(), self._config.node_id
        return self._reconfigure(
            wanted,
            lambda ticket, sound: ConfigsChanged(
                ticket,
                sound,
                defaults,
                validate_only,
                node_id,
                self.settings.changeable(broker_names(sound)),
                self._config.group_bounds(),
            ),
            replaces=False,
        )

    def replace_configs(
        self, wanted: Sequence[alter_configs.AlterConfigsResource], *, validate_only: bool = False
    ) -> list[Refusal | None]:
        """The same, but what is not named falls back to its default."""
        node_id = self._config.node_id
        return self._reconfigure(
            wanted,
            lambda ticket, sound: ConfigsReplaced(
                ticket,
                sound,
                validate_only,
                node_id,
                self.settings.changeable(broker_names(sound)),
                self._config.group_bounds(),
            ),
            replaces=True,
        )

    def delete(self, unwanted: Sequence[DeleteTopicState]) -> list[DeletableTopicResult]:
        """Delete topics by name or id, with everything in them; one result each."""
        before = dict(self._cluster.machine.topics)
        results: list[DeletableTopicResult] = self._ask(lambda ticket: TopicsUnwanted(ticket, tuple(unwanted)))
        for result in results:
            if not result.error_code and result.name is not None:
                self._waiting.look_again(self._partitions.remove(before[result.name]))
        return results

    def fault_of(self, resource: Any, *, replaces: bool) -> Refusal | None:
        """Why the listeners cannot act by what is set for them; what is wrong with single values the decision says."""
        if resource.resource_type != BROKER_RESOURCE or not any(
            one.name.startswith(PREFIX) for one in resource.configs
        ):
            return None
        try:
            config = self.settings.wished(resource.resource_name, resource.configs, replaces=replaces).in_force()
        except ConfigError:
            return None
        try:
            self.check_settings(config)
        except ConfigError as error:
            return Refusal(ErrorCode.INVALID_REQUEST, str(error))
        return None

    def _reconfigure(
        self, wanted: Sequence[R], event: Callable[[int, tuple[R, ...]], Any], *, replaces: bool
    ) -> list[Refusal | None]:
        faults = [self.fault_of(resource, replaces=replaces) for resource in wanted]
        sound = tuple(resource for resource, fault in zip(wanted, faults, strict=True) if fault is None)
        decided = iter(self._decide(sound, lambda ticket: event(ticket, sound)))
        return [next(decided) if fault is None else fault for fault in faults]

    def _decide(self, wanted: Sequence[Any], event: Callable[[int], Any]) -> list[Refusal | None]:
        try:
            refusals: list[Refusal | None] = self._ask(event)
        except KafkaError as error:  # nothing was written, so nothing is changed
            return [Refusal(error.code, str(error))] * len(wanted)
        changed = [resource for resource, refusal in zip(wanted, refusals, strict=True) if refusal is None]
        if any(resource.resource_type == BROKER_RESOURCE for resource in changed):
            if useless := sorted({*broker_names(changed)} - self.settings.dynamic().keys()):
                log.warning("broker configs kept without effect: %s", escape_controls(", ".join(useless)))
            self._configure()
        else:
            self._take_up(each.resource_name for each in changed if each.resource_type == TOPIC_RESOURCE)
        return refusals

    def _configure(self) -> None:
        """Act by the settings of now, in all topics."""
        self._config = self.settings.in_force()
        self._partitions.configure(self._config)
        for act in self._configured:
            act(self._config)
        self._take_up(topic.name for topic in self.all())

    def observed(self, records: Iterable[Message] | None) -> None:
        """After records came that others have decided, or a snapshot of all of them: None."""
        if records is None or any(
            isinstance(each, ConfigRecord) and each.resource_type == BROKER_RESOURCE for each in records
        ):
            self._configure()

    def _take_up(self, names: Iterable[str]) -> None:
        if self._given.joins:
            return  # What lies elsewhere is not served here.
        for name in names:
            self._partitions.add(self._cluster.machine.topics[name])

    def _request(self, ticket: int, wanted: Sequence[CreatableTopic], validate_only: bool) -> TopicsRequested:
        return TopicsRequested(
            ticket,
            topics=tuple(wanted),
            topic_ids=tuple(new_topic_id() for _ in wanted),
            node_id=self._config.node_id,
            default_partitions=self._config.num_partitions,
            default_replication=self._config.default_replication_factor,
            validate_only=validate_only,
            broker_configs=self._config.changed_topic_defaults(),
        )

    def _refusal(self, topic: CreatableTopic) -> CreatableTopicResult | None:
        """Why a topic cannot be made, whatever the metadata says."""
        name = topic.name
        if name in RESERVED:
            message = f"{name!r} is reserved for the broker's own use"
            return CreatableTopicResult(name=name, error_code=ErrorCode.INVALID_TOPIC_EXCEPTION, error_message=message)
        if self.named(name) is None and not self.name_error(name):
            count = len(topic.assignments) or (
                topic.num_partitions if topic.num_partitions > 0 else self._config.num_partitions
            )
            try:
                self._partitions.ensure_vacant(span(name, 0, count))
            except KafkaError as error:
                return CreatableTopicResult(name=name, error_code=error.code, error_message=error.message)
        return None

    def of_the_cluster(self, name: str) -> CreatableTopic:
        """What to ask controllers for that are to make it."""
        brokers = self._cluster.machine.registrations.values()
        return in_cluster(self._by_default(name), self._config, self._config.given, brokers)

    def _by_default(self, name: str) -> CreatableTopic:
        config = self._config
        if name == CONSUMER_OFFSETS:
            return compacted(name, config.offsets_topic_num_partitions, config.offsets_topic_segment_bytes)
        if name == TRANSACTION_STATE:
            count = config.transaction_state_log_num_partitions
            return compacted(name, count, config.transaction_state_log_segment_bytes)
        return CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)

    def _ask(self, event: Any) -> Any:
        known = dict(self._cluster.machine.topics)
        try:
            return self._cluster.ask(event)
        except KafkaError:
            # The metadata was read again from the disk, which may hold more or less than was answered.
            self._reconcile(known)
            raise

    def _reconcile(self, known: dict[str, Topic]) -> None:
        now = {topic.topic_id: topic for topic in self.all()}
        before = {topic.topic_id: topic for topic in known.values()}
        for topic_id in before.keys() - now.keys():
            self._waiting.look_again(self._partitions.remove(before[topic_id]))
        self._configure()


def ensure_few_partitions(counts: Iterable[int]) -> None:
    """Raise KafkaError where a request makes more partitions than it may; those of a topic that has too many are its own fault."""
    total = sum(count for count in counts if 0 < count <= MOST_PARTITIONS)
    if total > MOST_PARTITIONS:
        text = f"{total} partitions: at most {MOST_PARTITIONS} are made by one request; divide it into several"
        raise KafkaError(ErrorCode.POLICY_VIOLATION, text)


def span(name: str, first: int, end: int) -> list[TopicPartition]:
    """Partitions of a topic, as many as can be made at once."""
    return [TopicPartition(name, index) for index in range(first, min(end, first + MOST_PARTITIONS))]


def new_topic_id() -> uuid.UUID:
    """A random id; none begins with a dash when it is written as text, as Kafka sees to."""
    drawn = uuid.uuid4()
    while drawn.bytes[0] >> 2 == 62:  # the first character of its base64 form would be "-"
        drawn = uuid.uuid4()
    return drawn


def partition_of_key(topic: Topic, key: str) -> TopicPartition:
    """Where a coordinator keeps a group, or a transactional id, in the topic that it has for them."""
    return TopicPartition(topic.name, positive_java_hash(key) % len(topic.partitions))


def leader_of_key(topic: Topic | None, key: str) -> int:
    """Who leads the partition in which a key is kept; -1 where nobody does."""
    if topic is None or not topic.partitions:
        return -1
    return topic.partitions[partition_of_key(topic, key).partition].leader


def deleted_topics(cluster: Runtime[ClusterMetadata]) -> set[uuid.UUID]:
    """The topics of which the log of the metadata says that they were deleted.

    It reaches back to the snapshot before the last, and so beyond any deletion that the last crash interrupted.
    """
    return {record.topic_id for record in cluster.stored() if isinstance(record, RemoveTopicRecord)}


def broker_names(wanted: Iterable[Any]) -> list[str]:
    """The names of the brokers' configs that a request wants to change."""
    return [config.name for each in wanted if each.resource_type == BROKER_RESOURCE for config in each.configs]
