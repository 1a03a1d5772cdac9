"""The metadata of the cluster, as replayed from the metadata log (KIP-631).

They are features, brokers, controllers, topics, configs, ACLs, quotas, SCRAM credentials, delegation tokens and
producer ids.

`ClusterMetadata` replays the records of `__cluster_metadata`, on brokers and on controllers; `coordination/controller/`
decides which records are written. Records between BeginTransactionRecord and EndTransactionRecord become visible
together at the end, or never if the transaction is aborted (KIP-868).

A record can be damaged, or of a kind that only a later Kafka writes. The records that depend on a damaged one are
ignored. Unknown records are kept, so that a snapshot has them, unless the metadata.version is later than the supported
one: they may change the meaning of others, so the replay fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from uuid import UUID

from msgspec.structs import replace

from ottla.coordination.access.acl import Acl
from ottla.coordination.access.acl_store import AclStore
from ottla.coordination.cluster import (
    features,
    partition_record,
    registration,
)
from ottla.coordination.cluster.node_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    EndTransactionRecord,
    FenceBrokerRecord,
    NoOpRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
    ZkMigrationRecord,
)
from ottla.coordination.cluster.records import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    NO_LEADER,
    TOPIC_RESOURCE,
    AccessControlEntryRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EntityData,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnknownRecord,
    UserScramCredentialRecord,
)
from ottla.coordination.cluster.registration import BrokerRegistration
from ottla.coordination.cluster.resource_configs import ResourceConfigs, apply_config_record
from ottla.coordination.cluster.topic import ClusterTopic, PartitionState
from ottla.coordination.quotas.client_quotas import ClientQuotas
from ottla.errors import CorruptRecordError
from ottla.protocol.schema import Message

__all__ = ["ClusterMetadata", "ClusterTopic", "PartitionState"]


class ClusterMetadata:
    """The state after the replay of the metadata log."""

    def __init__(self) -> None:
        self.topics: dict[str, ClusterTopic] = {}
        self.topics_version = 0
        """Increases with every change of a topic or its partitions. Not persisted."""
        self.features: dict[str, int] = {}
        """Feature → finalized level."""
        self.broker_configs: dict[str, dict[str, str]] = {}
        """Broker id as text → settings changed at run time; the empty key has those of all brokers."""
        self._groups = ResourceConfigs()
        self._subscriptions = ResourceConfigs()
        self._unused_configs: dict[tuple[int, str], dict[str, str]] = {}
        """Kind and name of a resource that has no meaning here → its configs. They are kept for snapshots."""
        self.acls = AclStore()
        """The rules that the authorizer reads."""
        self.quotas = ClientQuotas()
        """The limits of clients."""
        self.scram_credentials: dict[tuple[str, int], UserScramCredentialRecord] = {}
        """User and SCRAM mechanism → credential."""
        self.scram_version = 0
        """Increases with every change of a credential. Not persisted."""
        self.tokens: dict[str, DelegationTokenRecord] = {}
        """Delegation tokens by id."""
        self.next_producer_id = 0
        self.registrations: dict[int, BrokerRegistration] = {}
        """Brokers by id, fenced ones included. Empty if the only broker is its own controller."""
        self.controllers: dict[int, RegisterControllerRecord] = {}
        """Controllers by id."""
        self._unknown_records: list[UnknownRecord] = []
        """Records that only a later Kafka knows, in order."""
        self._transaction: list[Message] | None = None
        """The records of the open transaction; None if there is none."""
        self._names: dict[UUID, str] = {}

    @property
    def groups(self) -> Mapping[str, Mapping[str, str]]:
        """The configs set on groups, by name. Every change creates another object."""
        return self._groups.by_name

    @property
    def subscriptions(self) -> Mapping[str, Mapping[str, str]]:
        """The client metrics subscriptions, by name. Every change creates another object."""
        return self._subscriptions.by_name

    def find_topic_by_id(self, topic_id: UUID) -> ClusterTopic | None:
        """Return the topic with this id; None if there is none."""
        name = self._names.get(topic_id)
        return None if name is None else self.topics[name]

    @property
    def in_transaction(self) -> bool:
        """True if records wait for the end of their transaction."""
        return self._transaction is not None

    def replay(self, record: Message) -> None:
        """Apply a record of the log.

        Raise CorruptRecordError for an unknown record of an unsupported metadata.version.
        """
        if self._transaction is not None and type(record) not in TRANSACTIONAL:
            self._transaction.append(record)
        else:
            REPLAYS[type(record)](self, record)

    def records(self) -> Iterator[Message]:
        """Yield records that recreate this state: a snapshot."""
        for name, level in self.features.items():
            yield FeatureLevelRecord(name, level)
        yield from self.controllers.values()
        for broker in self.registrations.values():
            yield registration.build_record(broker)
        yield from self._config_records()
        for topic in self.topics.values():
            yield from list_topic_records(topic)
        for acl_id, acl in self.acls.by_id.items():
            yield AccessControlEntryRecord(acl_id, *acl)
        for entity, limits in self.quotas.values.items():
            for key, value in limits.items():
                yield ClientQuotaRecord([EntityData(*part) for part in sorted(entity, key=str)], key, value)
        yield from self.scram_credentials.values()
        yield from self.tokens.values()
        yield from self._unknown_records
        if self.next_producer_id:
            yield ProducerIdsRecord(next_producer_id=self.next_producer_id)

    def copy_records(self) -> Iterator[Message]:
        """Return the records of the present state, for a snapshot that is written while records are replayed.

        Later changes do not affect them, because the values are immutable.
        """
        copy = ClusterMetadata()
        copy.features, copy.controllers = dict(self.features), dict(self.controllers)
        copy.registrations, copy.topics = dict(self.registrations), dict(self.topics)
        copy.broker_configs, copy._unused_configs = dict(self.broker_configs), dict(self._unused_configs)
        copy._groups, copy._subscriptions = ResourceConfigs(self.groups), ResourceConfigs(self.subscriptions)
        copy.acls.by_id, copy.quotas.values = dict(self.acls.by_id), dict(self.quotas.values)
        copy.scram_credentials, copy.tokens = dict(self.scram_credentials), dict(self.tokens)
        copy._unknown_records, copy.next_producer_id = list(self._unknown_records), self.next_producer_id
        return copy.records()

    def _config_records(self) -> Iterator[Message]:
        by_kind = {BROKER_RESOURCE: self.broker_configs, GROUP_RESOURCE: self.groups}
        by_kind[CLIENT_METRICS_RESOURCE] = self.subscriptions
        named = {(kind, name): own for kind, holders in by_kind.items() for name, own in holders.items()}
        for (kind, holder), own in (named | self._unused_configs).items():
            for name, value in own.items():
                yield ConfigRecord(kind, holder, name, value)

    def check(self) -> None:
        """Assert the invariants that hold between two records."""
        self.acls.check()
        assert {topic.topic_id: name for name, topic in self.topics.items()} == self._names
        for name, topic in self.topics.items():
            assert topic.name == name
            assert [p.index for p in topic.partitions] == list(range(len(topic.partitions)))
            assert all(p.leader == NO_LEADER or p.leader in p.isr for p in topic.partitions)
            assert all({*p.isr, *p.elr} <= set(p.replicas) for p in topic.partitions)
            assert all(len(p.directories) == len(p.replicas) for p in topic.partitions)
        assert all(number == each.broker_id for number, each in self.registrations.items())

    def _add_topic(self, record: TopicRecord) -> None:
        self.topics[record.name] = ClusterTopic(record.name, record.topic_id)
        self.topics_version += 1
        self._names[record.topic_id] = record.name

    def _add_partition(self, record: PartitionRecord) -> None:
        topic = self.find_topic_by_id(record.topic_id)
        if topic is None:
            return  # The record of the topic was damaged and skipped.
        self._put_partition(topic, partition_record.read_partition(record))

    def _change_partition(self, record: PartitionChangeRecord) -> None:
        topic = self.find_topic_by_id(record.topic_id)
        if topic is not None and record.partition_id < len(topic.partitions):
            self._put_partition(topic, partition_record.apply_change(topic.partitions[record.partition_id], record))

    def _put_partition(self, topic: ClusterTopic, state: PartitionState) -> None:
        # New partitions are in order of their index; a second record of a partition replaces it.
        before, after = topic.partitions[: state.index], topic.partitions[state.index + 1 :]
        self.put_partitions(topic, (*before, state, *after))

    def put_partitions(self, topic: ClusterTopic, partitions: tuple[PartitionState, ...]) -> None:
        """Replace all partitions of a topic at once."""
        self.topics[topic.name] = replace(topic, partitions=partitions)
        self.topics_version += 1

    def _clear_elr(self, record: ClearElrRecord) -> None:
        for name, topic in list(self.topics.items()):
            if record.topic_name in ("", name):
                cleared = tuple(map(partition_record.clear_elr, topic.partitions))
                self.topics[name] = replace(topic, partitions=cleared)
        self.topics_version += 1

    def _register_broker(self, record: RegisterBrokerRecord) -> None:
        self.registrations[record.broker_id] = registration.read_registration(record)

    def _unregister_broker(self, record: UnregisterBrokerRecord) -> None:
        self.registrations.pop(record.broker_id, None)

    def _change_registration(self, record: BrokerRegistrationChangeRecord) -> None:
        broker = self.registrations.get(record.broker_id)
        # A change of an earlier incarnation does not apply to this one.
        if broker is not None and broker.epoch == record.broker_epoch:
            self.registrations[record.broker_id] = registration.apply_change(broker, record)

    def _fence_broker(self, record: FenceBrokerRecord | UnfenceBrokerRecord) -> None:
        fenced = 1 if isinstance(record, FenceBrokerRecord) else -1
        self._change_registration(BrokerRegistrationChangeRecord(record.id, record.epoch, fenced))

    def _set_controller(self, record: RegisterControllerRecord) -> None:
        self.controllers[record.controller_id] = record

    def _remove_controller(self, record: UnregisterControllerRecord) -> None:
        self.controllers.pop(record.controller_id, None)

    def _begin_transaction(self, record: BeginTransactionRecord) -> None:
        self._transaction = []

    def _end_transaction(self, record: EndTransactionRecord | AbortTransactionRecord) -> None:
        complete, self._transaction = self._transaction or [], None
        if isinstance(record, EndTransactionRecord):
            from ottla.coordination.cluster.replaying import replay_all  # not needed without transactions

            replay_all(self, complete)

    def _keep_unknown_record(self, record: UnknownRecord) -> None:
        version = self.features.get(features.METADATA_VERSION, 0)
        if version > features.SUPPORTED[features.METADATA_VERSION].last:
            raise CorruptRecordError(
                f"a metadata record of kind {record.value[1]} is not known here: the cluster runs "
                f"{features.METADATA_VERSION} {version}, and this broker knows "
                f"{features.SUPPORTED[features.METADATA_VERSION].last}; use a newer Ottla"
            )
        self._unknown_records.append(record)

    def _set_config(self, record: ConfigRecord) -> None:
        name, topic = record.resource_name, self.topics.get(record.resource_name)
        if record.resource_type == BROKER_RESOURCE:
            self.broker_configs[name] = apply_config_record(self.broker_configs.get(name, {}), record)
        elif record.resource_type == GROUP_RESOURCE:
            self._groups.replay(record)
        elif record.resource_type == CLIENT_METRICS_RESOURCE:
            self._subscriptions.replay(record)
        elif record.resource_type == TOPIC_RESOURCE and topic is not None:
            self.topics[name] = replace(topic, configs=apply_config_record(topic.configs, record))
        elif record.resource_type != TOPIC_RESOURCE:
            self._unused_configs[record.resource_type, name] = apply_config_record(
                self._unused_configs.get((record.resource_type, name), {}), record
            )

    def _remove_topic(self, record: RemoveTopicRecord) -> None:
        name = self._names.pop(record.topic_id, None)
        if name is not None:
            del self.topics[name]
            self.topics_version += 1

    def _set_feature(self, record: FeatureLevelRecord) -> None:
        self.features[record.name] = record.feature_level
        if not record.feature_level:
            del self.features[record.name]

    def _add_acl(self, record: AccessControlEntryRecord) -> None:
        acl = Acl(
            record.resource_type,
            record.resource_name,
            record.pattern_type,
            record.principal,
            record.host,
            record.operation,
            record.permission_type,
        )
        self.acls.add(record.id, acl)

    def _set_quota(self, record: ClientQuotaRecord) -> None:
        entity = frozenset((each.entity_type, each.entity_name) for each in record.entity)
        self.quotas.set(entity, record.key, None if record.remove else record.value)

    def _set_scram_credential(self, record: UserScramCredentialRecord) -> None:
        self.scram_credentials[record.name, record.mechanism] = record
        self.scram_version += 1

    def _remove_scram_credential(self, record: RemoveUserScramCredentialRecord) -> None:
        self.scram_credentials.pop((record.name, record.mechanism), None)
        self.scram_version += 1

    def _remove_token(self, record: RemoveDelegationTokenRecord) -> None:
        self.tokens.pop(record.token_id, None)

    def _set_token(self, record: DelegationTokenRecord) -> None:
        self.tokens[record.token_id] = record

    def _set_next_producer_id(self, record: ProducerIdsRecord) -> None:
        self.next_producer_id = record.next_producer_id


REPLAYS: dict[type[Message], Callable[[ClusterMetadata, Any], None]] = {
    TopicRecord: ClusterMetadata._add_topic,
    PartitionRecord: ClusterMetadata._add_partition,
    PartitionChangeRecord: ClusterMetadata._change_partition,
    ClearElrRecord: ClusterMetadata._clear_elr,
    RegisterBrokerRecord: ClusterMetadata._register_broker,
    UnregisterBrokerRecord: ClusterMetadata._unregister_broker,
    BrokerRegistrationChangeRecord: ClusterMetadata._change_registration,
    FenceBrokerRecord: ClusterMetadata._fence_broker,
    UnfenceBrokerRecord: ClusterMetadata._fence_broker,
    RegisterControllerRecord: ClusterMetadata._set_controller,
    UnregisterControllerRecord: ClusterMetadata._remove_controller,
    BeginTransactionRecord: ClusterMetadata._begin_transaction,
    EndTransactionRecord: ClusterMetadata._end_transaction,
    AbortTransactionRecord: ClusterMetadata._end_transaction,
    NoOpRecord: lambda machine, record: None,
    ZkMigrationRecord: lambda machine, record: None,
    UnknownRecord: ClusterMetadata._keep_unknown_record,
    ConfigRecord: ClusterMetadata._set_config,
    RemoveTopicRecord: ClusterMetadata._remove_topic,
    FeatureLevelRecord: ClusterMetadata._set_feature,
    UserScramCredentialRecord: ClusterMetadata._set_scram_credential,
    RemoveUserScramCredentialRecord: ClusterMetadata._remove_scram_credential,
    DelegationTokenRecord: ClusterMetadata._set_token,
    RemoveDelegationTokenRecord: ClusterMetadata._remove_token,
    ProducerIdsRecord: ClusterMetadata._set_next_producer_id,
    AccessControlEntryRecord: ClusterMetadata._add_acl,
    ClientQuotaRecord: ClusterMetadata._set_quota,
    RemoveAccessControlEntryRecord: lambda machine, record: machine.acls.remove(record.id),
}

TRANSACTIONAL = frozenset((BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord))
"""Records that are applied at once, even within a transaction."""


def list_topic_records(topic: ClusterTopic) -> Iterator[Message]:
    """Yield the records of a topic, its partitions and its configs."""
    yield TopicRecord(topic.name, topic.topic_id)
    for state in topic.partitions:
        yield partition_record.build_record(topic.topic_id, state)
    for name, value in topic.configs.items():
        yield ConfigRecord(TOPIC_RESOURCE, topic.name, name, value)
