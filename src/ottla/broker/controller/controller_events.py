"""Requests to the active controller: each becomes an event for the state machine, and the reply becomes the response.

About half of the requests are events themselves (`ControllerRequest`), and the state machine replies with the response message. The others
are listed in `KINDS`: the state machine replies with one result per resource, and this module builds the response.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ottla.broker.apis.config_changes import build_results
from ottla.broker.apis.describe_acls import read_filter
from ottla.broker.metadata.topics import RESERVED, new_topic_id
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.dynamic_config import select_dynamic
from ottla.coordination.access.acl import Acl
from ottla.coordination.cluster.events import (
    AclCreationRequested,
    AclDeletionRequested,
    ConfigChangeRequested,
    ConfigReplacementRequested,
    Event,
    FeatureChangeRequested,
    QuotaChangeRequested,
    ScramChangeRequested,
    TopicDeletionRequested,
)
from ottla.coordination.cluster.features import PER_FEATURE_UNTIL, build_response
from ottla.coordination.cluster.topic_request import Refusal, build_error
from ottla.coordination.controller.events import NO_RANDOM_VALUES, ControllerEvent, ControllerRequest, RandomValues
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.apis import api_of
from ottla.protocol.messages import alter_configs, incremental_alter_configs
from ottla.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse, EntryData
from ottla.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from ottla.protocol.messages.create_acls import AclCreation, AclCreationResult, CreateAclsRequest, CreateAclsResponse
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from ottla.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ottla.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from ottla.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ottla.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from ottla.protocol.schema import Message, replace

TICKET = 0
"""The ticket of every event: the callback of `decide` identifies the request."""
SEED = 1 << 31


class ForwardedRequest(NamedTuple):
    """A request, its version, and the settings of the node."""

    request: Any
    version: int
    config: BrokerConfig


class RequestConversion(NamedTuple):
    """The conversion of a request type to an event, and of the reply to a response."""

    event: Callable[[ForwardedRequest], Event]
    response: Callable[[ForwardedRequest, Any], Message]
    """Makes the response from the reply."""
    names: Callable[[Any], Sequence[Any]]
    """The things that the request names; a refusal of the whole request is a refusal of each."""


def build_event(asking: ForwardedRequest) -> ControllerEvent | Event:
    """Return the event for the state machine."""
    kind = KINDS.get(type(asking.request))
    if kind is not None:
        return kind.event(asking)
    return ControllerRequest(TICKET, list_allowed(asking.request), chance_for(asking.request))


def build_event_response(asking: ForwardedRequest, reply: Any) -> Message:
    """Return the response for the reply, or for the KafkaError in its place."""
    if isinstance(reply, KafkaError):
        return build_refusal(asking, Refusal(reply.code, reply.message or reply.name))
    kind = KINDS.get(type(asking.request))
    if kind is not None:
        return kind.response(asking, reply)
    if isinstance(asking.request, CreateTopicsRequest):
        return CreateTopicsResponse(topics=[*reply.topics, *list_denied(asking.request)])
    response: Message = reply
    return response


def build_refusal(asking: ForwardedRequest, refusal: Refusal) -> Message:
    """Return the response that refuses everything in the request."""
    request = asking.request
    match request:
        case CreateTopicsRequest():
            return CreateTopicsResponse(topics=[build_error(each, refusal) for each in request.topics])
        case CreatePartitionsRequest():
            results = [CreatePartitionsTopicResult(each.name, refusal.code, str(refusal)) for each in request.topics]
            return CreatePartitionsResponse(results=results)
        case UpdateFeaturesRequest():
            return features_response(asking, refusal)
        case AlterUserScramCredentialsRequest():
            names = [each.name for each in request.deletions] + [each.name for each in request.upsertions]
            outcome = [
                AlterUserScramCredentialsResult(name, refusal.code, str(refusal)) for name in dict.fromkeys(names)
            ]
            return AlterUserScramCredentialsResponse(results=outcome)
        case DeleteTopicsRequest():
            unwanted = list_deletions(asking)
            return DeleteTopicsResponse(
                responses=[
                    DeletableTopicResult(each.name, each.topic_id, refusal.code, str(refusal)) for each in unwanted
                ]
            )
    kind = KINDS.get(type(request))
    if kind is not None:
        return kind.response(asking, [refusal] * len(kind.names(request)))
    make: Callable[..., Message] = api_of(request).response
    return make(error_code=refusal.code)


# topics


def chance_for(request: Message) -> RandomValues:
    """Draw the random values that the request needs."""
    if isinstance(request, CreateTopicsRequest):
        return RandomValues([new_topic_id() for _ in list_allowed(request).topics], random.randrange(SEED))
    return (
        RandomValues((), random.randrange(SEED)) if isinstance(request, CreatePartitionsRequest) else NO_RANDOM_VALUES
    )


def list_allowed(request: Any) -> Any:
    """Return the request without topics of reserved names."""
    if not isinstance(request, CreateTopicsRequest):
        return request
    return replace(request, topics=[each for each in request.topics if each.name not in RESERVED])


def list_denied(request: CreateTopicsRequest) -> list[Any]:
    """Return a refusal for each topic of a reserved name."""
    return [
        build_error(
            each, Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{each.name!r} is reserved for the brokers' own use")
        )
        for each in request.topics
        if each.name in RESERVED
    ]


def list_deletions(asking: ForwardedRequest) -> Sequence[DeleteTopicState]:
    """Return the topics to delete; early versions have names only."""
    if asking.version < 6:
        return [DeleteTopicState(name) for name in asking.request.topic_names]
    topics: Sequence[DeleteTopicState] = asking.request.topics
    return topics


# configs


def list_names(asking: ForwardedRequest) -> list[str]:
    """Return the names of the configs in the request."""
    return [config.name for resource in asking.request.resources for config in resource.configs]


def configs_changed(asking: ForwardedRequest) -> ConfigChangeRequested:
    config = asking.config
    return ConfigChangeRequested(
        TICKET,
        tuple(asking.request.resources),
        config.changed_topic_defaults(),
        asking.request.validate_only,
        None,
        select_dynamic(list_names(asking)),
        config.group_bounds(),
    )


def configs_replaced(asking: ForwardedRequest) -> ConfigReplacementRequested:
    config = asking.config
    return ConfigReplacementRequested(
        TICKET,
        tuple(asking.request.resources),
        asking.request.validate_only,
        None,
        select_dynamic(list_names(asking)),
        config.group_bounds(),
    )


# the rest


def features_response(
    asking: ForwardedRequest, answer: Refusal | Mapping[str, Refusal] | None
) -> UpdateFeaturesResponse:
    return build_response(asking.request.feature_updates, answer, asking.version)


def features_requested(asking: ForwardedRequest) -> FeatureChangeRequested:
    request = asking.request
    is_per_feature = asking.version <= PER_FEATURE_UNTIL
    return FeatureChangeRequested(TICKET, request.feature_updates, request.validate_only, is_per_feature)


def quotas_response(asking: ForwardedRequest, refusals: Sequence[Refusal | None]) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(
        entries=[
            EntryData(refusal.code, str(refusal), entry.entity) if refusal else EntryData(0, None, entry.entity)
            for entry, refusal in zip(asking.request.entries, refusals, strict=True)
        ]
    )


def build_acl_creation(asking: ForwardedRequest) -> AclCreationRequested:
    acls = [read_acl(each) for each in asking.request.creations]
    return AclCreationRequested(TICKET, acls, [uuid.uuid4() for _ in acls])


def read_acl(wanted: AclCreation) -> Acl:
    return Acl(
        wanted.resource_type,
        wanted.resource_name,
        wanted.resource_pattern_type,
        wanted.principal,
        wanted.host,
        wanted.operation,
        wanted.permission_type,
    )


def creation_result(refusal: Refusal | None) -> AclCreationResult:
    return AclCreationResult(0, None) if refusal is None else AclCreationResult(refusal.code, str(refusal))


def deletion_result(answer: Refusal | list[Acl]) -> DeleteAclsFilterResult:
    if isinstance(answer, Refusal):
        return DeleteAclsFilterResult(answer.code, str(answer))
    return DeleteAclsFilterResult(0, None, [DeleteAclsMatchingAcl(0, None, *acl) for acl in answer])


KINDS: dict[type[Message], RequestConversion] = {
    AlterClientQuotasRequest: RequestConversion(
        lambda asking: QuotaChangeRequested(TICKET, asking.request.entries, asking.request.validate_only),
        quotas_response,
        lambda request: request.entries,
    ),
    alter_configs.AlterConfigsRequest: RequestConversion(
        configs_replaced,
        lambda asking, reply: alter_configs.AlterConfigsResponse(
            responses=build_results(alter_configs.AlterConfigsResourceResponse, asking.request.resources, reply)
        ),
        lambda request: request.resources,
    ),
    AlterUserScramCredentialsRequest: RequestConversion(
        lambda asking: ScramChangeRequested(TICKET, tuple(asking.request.deletions), tuple(asking.request.upsertions)),
        lambda asking, reply: AlterUserScramCredentialsResponse(results=reply),
        lambda request: (),
    ),
    CreateAclsRequest: RequestConversion(
        build_acl_creation,
        lambda asking, reply: CreateAclsResponse(results=[creation_result(each) for each in reply]),
        lambda request: request.creations,
    ),
    DeleteAclsRequest: RequestConversion(
        lambda asking: AclDeletionRequested(TICKET, [read_filter(each) for each in asking.request.filters]),
        lambda asking, reply: DeleteAclsResponse(filter_results=[deletion_result(each) for each in reply]),
        lambda request: request.filters,
    ),
    DeleteTopicsRequest: RequestConversion(
        lambda asking: TopicDeletionRequested(TICKET, tuple(list_deletions(asking))),
        lambda asking, reply: DeleteTopicsResponse(responses=reply),
        lambda request: (),
    ),
    incremental_alter_configs.IncrementalAlterConfigsRequest: RequestConversion(
        configs_changed,
        lambda asking, reply: incremental_alter_configs.IncrementalAlterConfigsResponse(
            responses=build_results(
                incremental_alter_configs.AlterConfigsResourceResponse, asking.request.resources, reply
            )
        ),
        lambda request: request.resources,
    ),
    UpdateFeaturesRequest: RequestConversion(
        features_requested,
        features_response,
        lambda request: (),
    ),
}
