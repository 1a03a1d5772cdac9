"""The cluster's metadata: features, brokers, topics and their configs, who may do what, and how far producer ids are given away.

Decides and replays; draws no ids and reads no clock. What stands between the beginning of a transaction and its end becomes
state at its end, all of it, or nothing where it is aborted (KIP-868).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from uuid import UUID

from msgspec.structs import replace

from ottla.coordination.access.acl import Acl
from ottla.coordination.access.acl_store import AclStore
from ottla.coordination.cluster import (
    acl_request,
    config_change,
    copy_placement,
    elections,
    features,
    partition_record,
    partition_request,
    quota_request,
    registration,
    scram_change,
)
from ottla.coordination.cluster.config_holders import ConfigHolders, changed
from ottla.coordination.cluster.events import (
    AclsRequested,
    AclsUnwanted,
    ClientQuotasChanged,
    ClusterBegun,
    ConfigsChanged,
    ConfigsReplaced,
    CopiesPlaced,
    Event,
    FeaturesRequested,
    NodeStarted,
    PartitionsRequested,
    ProducerIdsRequested,
    ScramCredentialsRequested,
    TokenRequested,
    TokensUnwanted,
    TopicsRequested,
    TopicsUnwanted,
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
    ForeignRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UserScramCredentialRecord,
)
from ottla.coordination.cluster.registration import Registration
from ottla.coordination.cluster.topic import PartitionState, Topic
from ottla.coordination.cluster.topic_configs import settings_of
from ottla.coordination.cluster.topic_names import folded
from ottla.coordination.cluster.topic_request import (
    Refusal,
    accepted,
    check_name,
    configs_of,
    layout_of,
    records_of,
    refused,
)
from ottla.coordination.machine import Decision, Reply
from ottla.coordination.quotas.client_quotas import ClientQuotas
from ottla.errors import CorruptRecordError, ErrorCode, KafkaError
from ottla.protocol.messages.create_topics import CreatableTopic, CreatableTopicResult
from ottla.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicState
from ottla.protocol.schema import ZERO_UUID, Message

__all__ = ["ClusterMetadata", "PartitionState", "Topic"]
MOST_RECORDS = 10_000
"""The records that one request may write, as in Kafka (`MAX_RECORDS_PER_USER_OP`); beside them the record of each new topic."""


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
        self._groups = ConfigHolders()
        self._subscriptions = ConfigHolders()
        self.others: dict[tuple[int, str], dict[str, str]] = {}
        """Configs of what means nothing here, by kind and name: a snapshot keeps them."""
        self.acls = AclStore()
        """Who may do what, where an authorizer asks for it."""
        self.quotas = ClientQuotas()
        """How much clients may use."""
        self.passwords: dict[tuple[str, int], UserScramCredentialRecord] = {}
        """What is kept of users' passwords, by name and mechanism."""
        self.passwords_version = 0
        """Grows whenever one of them changes; starts at 0 with the process."""
        self.tokens: dict[str, DelegationTokenRecord] = {}
        """Delegation tokens by their ids."""
        self.next_producer_id = 0
        self.registrations: dict[int, Registration] = {}
        """Brokers by their numbers, those too that are fenced; none where the one broker is its own controller."""
        self.controllers: dict[int, RegisterControllerRecord] = {}
        """Controllers by their numbers."""
        self.foreign: list[ForeignRecord] = []
        """What a later Kafka wrote, in order."""
        self._transaction: list[Message] | None = None
        """What becomes state together, once it is complete."""
        self._names: dict[UUID, str] = {}

    @property
    def groups(self) -> Mapping[str, Mapping[str, str]]:
        """What groups set themselves; another object after each change."""
        return self._groups.all

    @groups.setter
    def groups(self, groups: Mapping[str, Mapping[str, str]]) -> None:
        self._groups = ConfigHolders(groups)

    @property
    def subscriptions(self) -> Mapping[str, Mapping[str, str]]:
        """Those to metrics of clients, by name; another object after each change."""
        return self._subscriptions.all

    @subscriptions.setter
    def subscriptions(self, subscriptions: Mapping[str, Mapping[str, str]]) -> None:
        self._subscriptions = ConfigHolders(subscriptions)

    def topic_by_id(self, topic_id: UUID) -> Topic | None:
        """The topic with that id."""
        name = self._names.get(topic_id)
        return None if name is None else self.topics[name]

    def decide(self, event: Event, now: float) -> Decision[Message]:
        """What is to be written and answered; KafkaError for a request that would change too much at once."""
        decision = DECISIONS[type(event)](self, event)
        if type(event) in OF_USERS:
            most = MOST_RECORDS + (len(event.topics) if isinstance(event, TopicsRequested) else 0)
            ensure_few(len(decision.records), most, is_deletion_of_acls=isinstance(event, AclsUnwanted))
        return decision

    @property
    def in_transaction(self) -> bool:
        """Whether records wait for the end of their transaction."""
        return self._transaction is not None

    def replay(self, record: Message) -> None:
        """Let a record of the log become state; CorruptRecordError for what only a later metadata.version has."""
        if self._transaction is not None and type(record) not in TRANSACTIONAL:
            self._transaction.append(record)
        else:
            REPLAYS[type(record)](self, record)

    def records(self) -> Iterator[Message]:
        """What would make this state of an empty one: a snapshot."""
        for name, level in self.features.items():
            yield FeatureLevelRecord(name, level)
        yield from self.controllers.values()
        for broker in self.registrations.values():
            yield registration.registration_record(broker)
        yield from self._config_records()
        for topic in self.topics.values():
            yield from topic_records(topic)
        for acl_id, acl in self.acls.by_id.items():
            yield AccessControlEntryRecord(acl_id, *acl)
        for entity, limits in self.quotas.values.items():
            for key, value in limits.items():
                yield ClientQuotaRecord([EntityData(*part) for part in sorted(entity, key=str)], key, value)
        yield from self.passwords.values()
        yield from self.tokens.values()
        yield from self.foreign
        if self.next_producer_id:
            yield ProducerIdsRecord(next_producer_id=self.next_producer_id)

    def _config_records(self) -> Iterator[Message]:
        by_kind = {BROKER_RESOURCE: self.brokers, GROUP_RESOURCE: self.groups}
        by_kind[CLIENT_METRICS_RESOURCE] = self.subscriptions
        named = {(kind, name): own for kind, holders in by_kind.items() for name, own in holders.items()}
        for (kind, holder), own in (named | self.others).items():
            for name, value in own.items():
                yield ConfigRecord(kind, holder, name, value)

    def check(self) -> None:
        self.acls.check()
        assert {topic.topic_id: name for name, topic in self.topics.items()} == self._names
        for name, topic in self.topics.items():
            assert topic.name == name
            assert [p.index for p in topic.partitions] == list(range(len(topic.partitions)))
            assert all(p.leader == NO_LEADER or p.leader in p.isr for p in topic.partitions)
            assert all({*p.isr, *p.elr} <= set(p.replicas) for p in topic.partitions)
            assert all(len(p.directories) == len(p.replicas) for p in topic.partitions)
        assert all(number == each.broker_id for number, each in self.registrations.items())

    def _decide_configs(self, event: ConfigsChanged | ConfigsReplaced) -> Decision[Message]:
        return config_change.decide(
            config_change.KnownConfigs(
                self.topics,
                self.brokers,
                self.groups,
                self.subscriptions,
                self.features.get(features.ELR_VERSION, 0) > 0,
            ),
            event,
        )

    def _decide_start(self, event: NodeStarted) -> Decision[Message]:
        # A transaction that is not complete ends as it would under another controller: its own is no more.
        aborted = [AbortTransactionRecord("its controller was stopped")] if self.in_transaction else []
        won = elections.elections(self.topics.values(), event.node_id)
        fenced = [
            BrokerRegistrationChangeRecord(each.broker_id, each.epoch, fenced=1)
            for each in self.registrations.values()
            if not each.fenced
        ]
        return Decision((*aborted, *fenced, *won), (Reply(event.ticket, None),))

    def _decide_producer_ids(self, event: ProducerIdsRequested) -> Decision[Message]:
        first = self.next_producer_id
        record = ProducerIdsRecord(broker_id=event.node_id, next_producer_id=first + event.count)
        return Decision((record,), (Reply(event.ticket, (first, event.count)),))

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

    def _decide_credentials(
        self, event: ScramCredentialsRequested | TokenRequested | TokensUnwanted
    ) -> Decision[Message]:
        if isinstance(event, ScramCredentialsRequested):
            return scram_change.decide(self.passwords, event)
        if isinstance(event, TokenRequested):
            return Decision((event.token,), (Reply(event.ticket, None),))
        gone = [RemoveDelegationTokenRecord(each) for each in event.token_ids if each in self.tokens]
        return Decision(tuple(gone), (Reply(event.ticket, None),))

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
        self._put_partition(topic, partition_record.state_of(record))

    def _change_partition(self, record: PartitionChangeRecord) -> None:
        topic = self.topic_by_id(record.topic_id)
        if topic is not None and record.partition_id < len(topic.partitions):
            self._put_partition(topic, partition_record.changed(topic.partitions[record.partition_id], record))

    def _put_partition(self, topic: Topic, state: PartitionState) -> None:
        # They come in order; a later record of a partition takes its place.
        before, after = topic.partitions[: state.index], topic.partitions[state.index + 1 :]
        self.put_partitions(topic, (*before, state, *after))

    def put_partitions(self, topic: Topic, partitions: tuple[PartitionState, ...]) -> None:
        """Let a topic have other partitions, all at once."""
        self.topics[topic.name] = replace(topic, partitions=partitions)
        self.topics_version += 1

    def _clear_elr(self, record: ClearElrRecord) -> None:
        for name, topic in list(self.topics.items()):
            if record.topic_name in ("", name):
                cleared = tuple(map(partition_record.without_elr, topic.partitions))
                self.topics[name] = replace(topic, partitions=cleared)
        self.topics_version += 1

    def _register(self, record: RegisterBrokerRecord) -> None:
        self.registrations[record.broker_id] = registration.registered(record)

    def _unregister(self, record: UnregisterBrokerRecord) -> None:
        self.registrations.pop(record.broker_id, None)

    def _change_registration(self, record: BrokerRegistrationChangeRecord) -> None:
        broker = self.registrations.get(record.broker_id)
        # What is told of an incarnation that is over tells nothing of this one.
        if broker is not None and broker.epoch == record.broker_epoch:
            self.registrations[record.broker_id] = registration.changed(broker, record)

    def _fence(self, record: FenceBrokerRecord | UnfenceBrokerRecord) -> None:
        fenced = 1 if isinstance(record, FenceBrokerRecord) else -1
        self._change_registration(BrokerRegistrationChangeRecord(record.id, record.epoch, fenced))

    def _set_controller(self, record: RegisterControllerRecord) -> None:
        self.controllers[record.controller_id] = record

    def _begin(self, record: BeginTransactionRecord) -> None:
        self._transaction = []

    def _end(self, record: EndTransactionRecord | AbortTransactionRecord) -> None:
        complete, self._transaction = self._transaction or [], None
        if isinstance(record, EndTransactionRecord):
            from ottla.coordination.cluster.replaying import replay_all  # a broker alone has none to end

            replay_all(self, complete)

    def _keep_foreign(self, record: ForeignRecord) -> None:
        version = self.features.get(features.METADATA_VERSION, 0)
        if version > features.SUPPORTED[features.METADATA_VERSION].last:
            raise CorruptRecordError(
                f"a metadata record of kind {record.value[1]} is not known here: the cluster runs "
                f"{features.METADATA_VERSION} {version}, and this broker knows "
                f"{features.SUPPORTED[features.METADATA_VERSION].last}; use a newer Ottla"
            )
        self.foreign.append(record)

    def _set_config(self, record: ConfigRecord) -> None:
        name, topic = record.resource_name, self.topics.get(record.resource_name)
        if record.resource_type == BROKER_RESOURCE:
            self.brokers[name] = changed(self.brokers.get(name, {}), record)
        elif record.resource_type == GROUP_RESOURCE:
            self._groups.replay(record)
        elif record.resource_type == CLIENT_METRICS_RESOURCE:
            self._subscriptions.replay(record)
        elif record.resource_type == TOPIC_RESOURCE and topic is not None:
            self.topics[name] = replace(topic, configs=changed(topic.configs, record))
        elif record.resource_type != TOPIC_RESOURCE:
            self.others[record.resource_type, name] = changed(self.others.get((record.resource_type, name), {}), record)

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

    def _set_password(self, record: UserScramCredentialRecord) -> None:
        self.passwords[record.name, record.mechanism] = record
        self.passwords_version += 1

    def _remove_password(self, record: RemoveUserScramCredentialRecord) -> None:
        self.passwords.pop((record.name, record.mechanism), None)
        self.passwords_version += 1

    def _remove_token(self, record: RemoveDelegationTokenRecord) -> None:
        self.tokens.pop(record.token_id, None)

    def _set_token(self, record: DelegationTokenRecord) -> None:
        self.tokens[record.token_id] = record

    def _give_producer_ids(self, record: ProducerIdsRecord) -> None:
        self.next_producer_id = record.next_producer_id


DECISIONS: dict[type[Event], Callable[[ClusterMetadata, Any], Decision[Message]]] = {
    TopicsRequested: ClusterMetadata._decide_creation,
    TopicsUnwanted: ClusterMetadata._decide_deletion,
    PartitionsRequested: lambda machine, event: partition_request.decide(machine.topics, event),
    ConfigsChanged: ClusterMetadata._decide_configs,
    ConfigsReplaced: ClusterMetadata._decide_configs,
    ClusterBegun: lambda machine, event: Decision(features.first_records(event.told), (Reply(event.ticket, None),)),
    NodeStarted: ClusterMetadata._decide_start,
    CopiesPlaced: lambda machine, event: copy_placement.decide(machine.topics, event),
    FeaturesRequested: lambda machine, event: features.decide(
        machine.features, event, features.OF_A_BROKER, {**features.FIXED, **features.ALONE}
    ),
    ProducerIdsRequested: ClusterMetadata._decide_producer_ids,
    ScramCredentialsRequested: ClusterMetadata._decide_credentials,
    TokenRequested: ClusterMetadata._decide_credentials,
    TokensUnwanted: ClusterMetadata._decide_credentials,
    AclsRequested: lambda machine, event: acl_request.decide_creation(machine.acls, event),
    ClientQuotasChanged: lambda machine, event: quota_request.decide(machine.quotas, event),
    AclsUnwanted: lambda machine, event: acl_request.decide_deletion(machine.acls, event),
}
REPLAYS: dict[type[Message], Callable[[ClusterMetadata, Any], None]] = {
    TopicRecord: ClusterMetadata._add_topic,
    PartitionRecord: ClusterMetadata._add_partition,
    PartitionChangeRecord: ClusterMetadata._change_partition,
    ClearElrRecord: ClusterMetadata._clear_elr,
    RegisterBrokerRecord: ClusterMetadata._register,
    UnregisterBrokerRecord: ClusterMetadata._unregister,
    BrokerRegistrationChangeRecord: ClusterMetadata._change_registration,
    FenceBrokerRecord: ClusterMetadata._fence,
    UnfenceBrokerRecord: ClusterMetadata._fence,
    RegisterControllerRecord: ClusterMetadata._set_controller,
    BeginTransactionRecord: ClusterMetadata._begin,
    EndTransactionRecord: ClusterMetadata._end,
    AbortTransactionRecord: ClusterMetadata._end,
    NoOpRecord: lambda machine, record: None,
    ZkMigrationRecord: lambda machine, record: None,
    ForeignRecord: ClusterMetadata._keep_foreign,
    ConfigRecord: ClusterMetadata._set_config,
    RemoveTopicRecord: ClusterMetadata._remove_topic,
    FeatureLevelRecord: ClusterMetadata._set_feature,
    UserScramCredentialRecord: ClusterMetadata._set_password,
    RemoveUserScramCredentialRecord: ClusterMetadata._remove_password,
    DelegationTokenRecord: ClusterMetadata._set_token,
    RemoveDelegationTokenRecord: ClusterMetadata._remove_token,
    ProducerIdsRecord: ClusterMetadata._give_producer_ids,
    AccessControlEntryRecord: ClusterMetadata._add_acl,
    ClientQuotaRecord: ClusterMetadata._set_quota,
    RemoveAccessControlEntryRecord: lambda machine, record: machine.acls.remove(record.id),
}

OF_USERS = frozenset(
    (
        TopicsRequested,
        TopicsUnwanted,
        PartitionsRequested,
        ConfigsChanged,
        ConfigsReplaced,
        FeaturesRequested,
        ScramCredentialsRequested,
        AclsRequested,
        AclsUnwanted,
        ClientQuotasChanged,
    )
)
"""What one request of a client asks for; what brokers need is not bounded by it."""


def ensure_few(count: int, most: int = MOST_RECORDS, *, is_deletion_of_acls: bool = False) -> None:
    """Raise KafkaError where a request would write more records than one may."""
    if count > most:
        code = ErrorCode.INVALID_REQUEST if is_deletion_of_acls else ErrorCode.POLICY_VIOLATION
        text = f"the request makes {count} changes, and one request may make {most}: divide it into several"
        raise KafkaError(code, text)


TRANSACTIONAL = frozenset((BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord))
"""What counts at once, also within a transaction."""


def topic_records(topic: Topic) -> Iterator[Message]:
    """A topic with its partitions and configs."""
    yield TopicRecord(topic.name, topic.topic_id)
    for state in topic.partitions:
        yield partition_record.record_of(topic.topic_id, state)
    for name, value in topic.configs.items():
        yield ConfigRecord(TOPIC_RESOURCE, topic.name, name, value)


def not_deleted(wanted: DeleteTopicState, refusal: Refusal | None) -> DeletableTopicResult:
    """The answer to a deletion that does not happen."""
    assert refusal is not None
    return DeletableTopicResult(
        name=wanted.name, topic_id=wanted.topic_id, error_code=refusal.code, error_message=str(refusal)
    )
