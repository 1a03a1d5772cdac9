"""The client requests that the active controller decides from the metadata alone.

These are changes of configs (KIP-339), ACLs, client quotas (KIP-546), SCRAM credentials (KIP-554), delegation tokens
and feature levels (KIP-584), and the deletion of topics. Requests that place or move replicas, and the requests of
brokers, are decided in the modules that `controller.HANDLERS` lists.

The response has one result per resource: a change that is rejected does not prevent the others of the same request.
Only a request with too many changes, and an UpdateFeatures request with an unsupported level, is rejected as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ottla.coordination.cluster import acl_request, config_change, features, quota_request, scram_change
from ottla.coordination.cluster.events import (
    AclCreationRequested,
    AclDeletionRequested,
    ConfigChangeRequested,
    ConfigReplacementRequested,
    Event,
    FeatureChangeRequested,
    QuotaChangeRequested,
    ScramChangeRequested,
    TokenCreationRequested,
    TokenDeletionRequested,
    TopicDeletionRequested,
)
from ottla.coordination.cluster.features import BROKER_LEVELS, ELR_VERSION, METADATA_VERSION, find_level_fault
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.records import RemoveDelegationTokenRecord, RemoveTopicRecord
from ottla.coordination.cluster.topic import ClusterTopic
from ottla.coordination.cluster.topic_request import Refusal
from ottla.coordination.controller.config import ControllerConfig
from ottla.coordination.controller.min_isr import list_cleared_elrs, unify_min_isr
from ottla.coordination.machine import Decision, Reply
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicState
from ottla.protocol.messages.update_features import FeatureUpdateKey
from ottla.protocol.schema import ZERO_UUID, Message

MOST_RECORDS = 10_000
"""The maximum number of records for one request, as in Kafka (`MAX_RECORDS_PER_USER_OP`).

CreateTopics may have one more per topic.
"""


def decide(metadata: ClusterMetadata, event: Event, config: ControllerConfig) -> Decision[Message]:
    """Return the records and the reply. Raise KafkaError if the request makes too many changes.

    While `eligible.leader.replicas.version` is 1, a change of `min.insync.replicas` also clears the ELRs that depend on
    it (KIP-966).
    """
    if isinstance(event, FeatureChangeRequested):
        return change_feature_levels(metadata, event, config)
    decision = DECISIONS[type(event)](metadata, event)
    if not isinstance(event, TokenCreationRequested | TokenDeletionRequested):
        check_record_count(len(decision.records), is_deletion_of_acls=isinstance(event, AclDeletionRequested))
    if not metadata.features.get(ELR_VERSION):
        return decision
    records = [each for record in decision.records for each in (record, *list_cleared_elrs(record))]
    return Decision(tuple(records), decision.replies, decision.alarms, decision.notes)


def check_record_count(count: int, most: int = MOST_RECORDS, *, is_deletion_of_acls: bool = False) -> None:
    """Raise KafkaError if a request would write more than `most` records."""
    if count > most:
        code = ErrorCode.INVALID_REQUEST if is_deletion_of_acls else ErrorCode.POLICY_VIOLATION
        text = f"the request makes {count} changes, and one request may make {most}: divide it into several"
        raise KafkaError(code, text)


def change_configs(
    metadata: ClusterMetadata, event: ConfigChangeRequested | ConfigReplacementRequested
) -> Decision[Message]:
    """Decide IncrementalAlterConfigs or AlterConfigs, given the present configs of all resources."""
    known = config_change.KnownConfigs(
        metadata.topics,
        metadata.broker_configs,
        metadata.groups,
        metadata.subscriptions,
        metadata.features.get(ELR_VERSION, 0) > 0,
    )
    return config_change.decide(known, event)


def delete_tokens(metadata: ClusterMetadata, event: TokenDeletionRequested) -> Decision[Message]:
    """Remove the tokens that still exist; a token may have been removed by an earlier event."""
    deletions = [RemoveDelegationTokenRecord(each) for each in event.token_ids if each in metadata.tokens]
    return Decision(tuple(deletions), (Reply(event.ticket, None),))


def delete_topics(metadata: ClusterMetadata, event: TopicDeletionRequested) -> Decision[Message]:
    """Delete topics by name or by id. The reply has one result per topic, in order."""
    records: list[Message] = []
    results: list[DeletableTopicResult] = []
    found = [find_topic(metadata, unwanted) for unwanted in event.topics]
    named = Counter(topic.topic_id for topic, _ in found if topic is not None)
    for unwanted, (topic, refusal) in zip(event.topics, found, strict=True):
        if topic is not None and named[topic.topic_id] > 1:
            # One of the two may be a mistake for another topic, so neither is deleted.
            refusal = Refusal(ErrorCode.INVALID_REQUEST, f"Topic '{topic.name}' is named twice in this request.")
        if topic is None or refusal is not None:
            results.append(build_deletion_error(unwanted, refusal))
        else:
            records.append(RemoveTopicRecord(topic.topic_id))
            results.append(DeletableTopicResult(name=topic.name, topic_id=topic.topic_id))
    return Decision(tuple(records), (Reply(event.ticket, results),))


def find_topic(metadata: ClusterMetadata, wanted: DeleteTopicState) -> tuple[ClusterTopic | None, Refusal | None]:
    """Return the topic that the request identifies by name or by id, or the error."""
    if (wanted.name is None) == (wanted.topic_id == ZERO_UUID):
        return None, Refusal(ErrorCode.INVALID_REQUEST, "A topic is named either by its name or by its id.")
    if wanted.name is not None:
        topic = metadata.topics.get(wanted.name)
        missing = Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic '{wanted.name}'.")
    else:
        topic = metadata.find_topic_by_id(wanted.topic_id)
        missing = Refusal(ErrorCode.UNKNOWN_TOPIC_ID, f"There is no topic with id {wanted.topic_id}.")
    return topic, None if topic else missing


def build_deletion_error(wanted: DeleteTopicState, refusal: Refusal | None) -> DeletableTopicResult:
    """Return the result for a topic that is not deleted."""
    assert refusal is not None
    return DeletableTopicResult(
        name=wanted.name, topic_id=wanted.topic_id, error_code=refusal.code, error_message=str(refusal)
    )


DECISIONS: dict[type[Event], Callable[[ClusterMetadata, Any], Decision[Message]]] = {
    AclCreationRequested: lambda metadata, event: acl_request.decide_creation(
        metadata.acls, event, metadata.features.get(METADATA_VERSION, 0)
    ),
    AclDeletionRequested: lambda metadata, event: acl_request.decide_deletion(metadata.acls, event),
    QuotaChangeRequested: lambda metadata, event: quota_request.decide(metadata.quotas, event),
    ConfigChangeRequested: change_configs,
    ConfigReplacementRequested: change_configs,
    ScramChangeRequested: lambda metadata, event: scram_change.decide(metadata.scram_credentials, event),
    TokenCreationRequested: lambda metadata, event: Decision((event.token,), (Reply(event.ticket, None),)),
    TokenDeletionRequested: delete_tokens,
    TopicDeletionRequested: delete_topics,
}


def change_feature_levels(
    metadata: ClusterMetadata, event: FeatureChangeRequested, config: ControllerConfig
) -> Decision[Message]:
    """Decide UpdateFeatures.

    If the request raises `eligible.leader.replicas.version`, the records of `unify_min_isr` come first, so that all
    brokers already use one `min.insync.replicas`.
    """
    fault = next((fault for update in event.updates for fault in find_level_faults(metadata, update)), None)
    if fault is not None:
        return Decision((), (Reply(event.ticket, Refusal(ErrorCode.INVALID_UPDATE_VERSION, fault)),))
    decision = features.decide(metadata.features, event, BROKER_LEVELS)
    done = not event.validate_only and not isinstance(decision.replies[0].message, Refusal)
    wanted = any(each.feature == ELR_VERSION and each.max_version_level > 0 for each in event.updates)
    before = unify_min_isr(metadata.broker_configs, config) if done and wanted else []
    return Decision((*before, *decision.records), decision.replies)


def find_level_faults(metadata: ClusterMetadata, update: FeatureUpdateKey) -> Iterator[str]:
    """Yield an error for each registered broker and controller that does not support the level."""
    if find_level_fault(update.feature, update.max_version_level, BROKER_LEVELS) is not None:
        return  # `features.decide` returns the error.
    for kind, number, levels in list_supported_levels(metadata):
        first, last = levels.get(update.feature, (0, 0))
        if not first <= update.max_version_level <= last:
            yield (
                f"{update.feature} {update.max_version_level} is more than {kind} {number} can run, "
                f"which knows {first} to {last}: upgrade that {kind} first"
            )


def list_supported_levels(metadata: ClusterMetadata) -> Iterator[tuple[str, int, Mapping[str, tuple[int, int]]]]:
    """Yield the kind, id and supported feature levels of each registered broker and controller."""
    for number, broker in sorted(metadata.registrations.items()):
        yield "broker", number, dict(broker.features)
    for number, controller in sorted(metadata.controllers.items()):
        known = {each.name: (each.min_supported_version, each.max_supported_version) for each in controller.features}
        yield "controller", number, known
