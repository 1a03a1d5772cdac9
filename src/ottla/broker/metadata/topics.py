"""The topics of the cluster and the settings of this broker, by the metadata image."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from ottla.broker.metadata.internal_topics import (
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    TRANSACTION_STATE,
    in_cluster,
    make_compacted_topic,
    pruned,
)
from ottla.broker.metadata.metadata_log import CLUSTER_METADATA
from ottla.broker.metadata.observed_metadata import ObservedMetadata
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.dynamic_config import DynamicSettings
from ottla.broker.settings.listener_settings import PREFIX
from ottla.coordination.cluster.group_configs import RACK_TAGS, find_effective_values, parse_tags
from ottla.coordination.cluster.metadata import ClusterMetadata, ClusterTopic
from ottla.coordination.cluster.records import BROKER_RESOURCE, ConfigRecord
from ottla.coordination.cluster.topic_names import find_fault
from ottla.coordination.cluster.topic_request import Refusal
from ottla.errors import ConfigError, ErrorCode
from ottla.java_hash import positive_java_hash
from ottla.model import TopicPartition
from ottla.protocol.messages.create_topics import CreatableTopic
from ottla.protocol.schema import Message

if TYPE_CHECKING:
    from ottla.coordination.groups.consumer.image import TopicImage

RESERVED = {CLUSTER_METADATA}
"""Internal names that clients cannot create and that this broker does not list."""


class HostedPartitions(Protocol):
    """The partitions on this broker, which have configs of the broker and of their topics."""

    def configure(self, config: BrokerConfig) -> None:
        """Apply other settings to topics that are added from now on."""

    def apply_configs(self, topics: Iterable[ClusterTopic]) -> None:
        """Apply the settings of the broker to the topics that have a partition here."""


class Topics:
    """The topics of the metadata image, with their configs and leaders."""

    def __init__(
        self,
        config: BrokerConfig,
        cluster: ObservedMetadata,
        partitions: HostedPartitions,
        check_listeners: Callable[[BrokerConfig], None],
    ) -> None:
        """`check_listeners` raises ConfigError for settings that the listeners cannot apply."""
        self._given = config
        self._check_listeners = check_listeners
        self._config = config
        self._cluster = cluster
        self._partitions = partitions
        self._image: TopicImage | None = None
        self._imaged: ClusterMetadata | None = None
        self._group_settings: Mapping[str, Mapping[str, Any]] = {}
        self._group_configs: Mapping[str, Mapping[str, str]] | None = None
        self._configured: list[Callable[[BrokerConfig], object]] = []
        self._configure()

    @property
    def config(self) -> BrokerConfig:
        """The present settings of the broker."""
        return self._config

    def on_configured(self, act: Callable[[BrokerConfig], object]) -> None:
        """Have `act` called with the broker's settings, now and whenever they change."""
        self._configured.append(act)
        act(self._config)

    @property
    def settings(self) -> DynamicSettings:
        """The broker's settings, with dynamic changes."""
        return DynamicSettings(self._given, self._cluster.machine.broker_configs)

    def all(self) -> Iterable[ClusterTopic]:
        return self._cluster.machine.topics.values()

    def image(self) -> TopicImage:
        """Return all topics for the group coordinator.

        The same object is returned until a topic is created, deleted or extended.
        """
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
        """The configs of groups, by group id."""
        return self._cluster.machine.groups

    @property
    def subscriptions(self) -> Mapping[str, Mapping[str, str]]:
        """The client metrics subscriptions, by name; the same object until one changes."""
        return self._cluster.machine.subscriptions

    def group_settings(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the effective settings of groups with own configs, by the coordinator's names.

        The same object is returned until the groups' configs change.
        """
        configs, bounds = self.group_configs, self._config.group_bounds()
        if self._group_configs is not configs:
            self._group_configs = configs
            self._group_settings = {
                group: {
                    **{name.replace(".", "_"): value for name, value in find_effective_values(own, bounds).items()},
                    **({RACK_TAGS.replace(".", "_"): parse_tags(own[RACK_TAGS])} if RACK_TAGS in own else {}),
                }
                for group, own in configs.items()
            }
        return self._group_settings

    def find_by_name(self, name: str) -> ClusterTopic | None:
        return self._cluster.machine.topics.get(name)

    def find_configs(self, name: str) -> Mapping[str, str]:
        """Return the configs that were set for a topic itself; empty if there is no such topic."""
        topic = self.find_by_name(name)
        return {} if topic is None else topic.configs

    def find_leader(self, place: TopicPartition) -> int | None:
        """Return the leader of a partition, -1 if it has none; None if there is no such partition."""
        topic = self.find_by_name(place.topic)
        if topic is None or not 0 <= place.partition < len(topic.partitions):
            return None
        return topic.partitions[place.partition].leader

    def has_partition(self, name: str, index: int) -> bool:
        """Return True if the partition exists, on any broker."""
        return self.find_leader(TopicPartition(name, index)) is not None

    def with_id(self, topic_id: uuid.UUID) -> ClusterTopic | None:
        return self._cluster.machine.find_topic_by_id(topic_id)

    def name_of(self, topic_id: uuid.UUID) -> str | None:
        """Return the name of the topic with that id, None if there is none."""
        topic = self._cluster.machine.find_topic_by_id(topic_id)
        return None if topic is None else topic.name

    def absent_code(self, name: str, index: int) -> ErrorCode:
        """Return the error for a partition that is not on this broker: another broker may have it."""
        topic = self.find_by_name(name)
        if topic is None or not 0 <= index < len(topic.partitions):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

    def name_error(self, name: str) -> int:
        """Return the error if no topic of that name can be created, else NONE."""
        return ErrorCode.INVALID_TOPIC_EXCEPTION if name in RESERVED or find_fault(name) else ErrorCode.NONE

    def find_fault(self, resource: Any, *, replaces: bool) -> Refusal | None:
        """Return a refusal if the listeners cannot apply the requested configs.

        Invalid values of single configs are left to the controller's decision.
        """
        if resource.resource_type != BROKER_RESOURCE or not any(
            one.name.startswith(PREFIX) for one in resource.configs
        ):
            return None
        try:
            config = self.settings.with_changes(resource.resource_name, resource.configs, replaces=replaces).in_force()
        except ConfigError:
            return None
        try:
            self._check_listeners(config)
        except ConfigError as error:
            return Refusal(ErrorCode.INVALID_REQUEST, str(error))
        return None

    def _configure(self) -> None:
        """Apply the present settings to all topics and subscribers."""
        self._config = self.settings.in_force()
        self._partitions.configure(self._config)
        for act in self._configured:
            act(self._config)
        self._partitions.apply_configs(self.all())

    def handle_records(self, records: Iterable[Message] | None) -> None:
        """Apply broker configs if the replayed records have some; None is a whole snapshot."""
        if records is None or any(
            isinstance(each, ConfigRecord) and each.resource_type == BROKER_RESOURCE for each in records
        ):
            self._configure()

    def complete_creation(self, name: str) -> CreatableTopic:
        """Return the request to the controllers that creates an internal topic."""
        brokers = self._cluster.machine.registrations.values()
        return in_cluster(self._by_default(name), self._config, self._config.given, brokers)

    def _by_default(self, name: str) -> CreatableTopic:
        config = self._config
        if name == CONSUMER_OFFSETS:
            return make_compacted_topic(name, config.offsets_topic_num_partitions, config.offsets_topic_segment_bytes)
        if name == TRANSACTION_STATE:
            count = config.transaction_state_log_num_partitions
            return make_compacted_topic(name, count, config.transaction_state_log_segment_bytes)
        if name == SHARE_GROUP_STATE:
            count = config.share_coordinator_state_topic_num_partitions
            return pruned(name, count, config.share_coordinator_state_topic_segment_bytes)
        return CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)


def new_topic_id() -> uuid.UUID:
    """Return a random topic id. Its base64 text does not start with a dash, as in Kafka."""
    drawn = uuid.uuid4()
    while drawn.bytes[0] >> 2 == 62:  # the first character of its base64 form would be "-"
        drawn = uuid.uuid4()
    return drawn


def find_partition_of_key(topic: ClusterTopic, key: str) -> TopicPartition:
    """Return the partition of a coordinator's internal topic in which a group or transactional id is kept."""
    return TopicPartition(topic.name, positive_java_hash(key) % len(topic.partitions))


def find_leader_of_key(topic: ClusterTopic | None, key: str) -> int:
    """Return the leader of the partition in which a key is kept, -1 if there is none."""
    if topic is None or not topic.partitions:
        return -1
    return topic.partitions[find_partition_of_key(topic, key).partition].leader
