"""Requests to the active controller: each becomes an event for the state machine, and the reply becomes the response.

Half of the requests are events as they are (`Asked`), and the machine replies with the response. The others are decided by a
lone broker as well: for them the machine replies for each thing that is named, and the response is made here.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ottla.broker.cluster.topics import RESERVED, new_topic_id
from ottla.broker.config_changes import answers
from ottla.broker.handlers import create_acls, delete_acls
from ottla.broker.handlers.describe_acls import filter_of
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.dynamic_config import dynamic_of
from ottla.coordination.cluster.events import (
    AclsRequested,
    AclsUnwanted,
    ClientQuotasChanged,
    ConfigsChanged,
    ConfigsReplaced,
    Event,
    FeaturesRequested,
    ScramCredentialsRequested,
    TopicsUnwanted,
)
from ottla.coordination.cluster.features import PER_FEATURE_UNTIL, results_of
from ottla.coordination.cluster.topic_request import Refusal, refused
from ottla.coordination.controller.controller import ANSWERS
from ottla.coordination.controller.events import NO_CHANCE, Asked, Chance, ControllerEvent
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.apis import api_of
from ottla.protocol.messages import alter_configs, incremental_alter_configs
from ottla.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse, EntryData
from ottla.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from ottla.protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from ottla.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ottla.protocol.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
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


class Asking(NamedTuple):
    """A request, its version, and the settings of the node."""

    request: Any
    version: int
    config: BrokerConfig


class Kind(NamedTuple):
    """How a request that a lone broker decides as well becomes an event, and its reply a response."""

    event: Callable[[Asking], Event]
    response: Callable[[Asking, Any], Message]
    """Makes the response from the reply."""
    names: Callable[[Any], Sequence[Any]]
    """The things that the request names; a refusal of the whole request is a refusal of each."""


def is_decided(request: type[Message]) -> bool:
    return request in ANSWERS or request in KINDS


def event_of(asking: Asking) -> ControllerEvent | Event:
    """Return the event for the state machine."""
    kind = KINDS.get(type(asking.request))
    if kind is not None:
        return kind.event(asking)
    return Asked(TICKET, allowed(asking.request), chance_for(asking.request))


def response_of(asking: Asking, reply: Any) -> Message:
    """Return the response for the reply, or for the KafkaError in its place."""
    if isinstance(reply, KafkaError):
        return refusal_of(asking, Refusal(reply.code, reply.message or reply.name))
    kind = KINDS.get(type(asking.request))
    if kind is not None:
        return kind.response(asking, reply)
    if isinstance(asking.request, CreateTopicsRequest):
        return CreateTopicsResponse(topics=[*reply.topics, *kept_out(asking.request)])
    response: Message = reply
    return response


def refusal_of(asking: Asking, refusal: Refusal) -> Message:
    """Return the response that refuses everything in the request."""
    request = asking.request
    match request:
        case CreateTopicsRequest():
            return CreateTopicsResponse(topics=[refused(each, refusal) for each in request.topics])
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
            unwanted = unwanted_of(asking)
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


def chance_for(request: Message) -> Chance:
    """Draw the random values that the request needs."""
    if isinstance(request, CreateTopicsRequest):
        return Chance([new_topic_id() for _ in allowed(request).topics], random.randrange(SEED))
    return Chance((), random.randrange(SEED)) if isinstance(request, CreatePartitionsRequest) else NO_CHANCE


def allowed(request: Any) -> Any:
    """Return the request without topics of reserved names."""
    if not isinstance(request, CreateTopicsRequest):
        return request
    return replace(request, topics=[each for each in request.topics if each.name not in RESERVED])


def kept_out(request: CreateTopicsRequest) -> list[Any]:
    """Return a refusal for each topic of a reserved name."""
    return [
        refused(each, Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{each.name!r} is reserved for the brokers' own use"))
        for each in request.topics
        if each.name in RESERVED
    ]


def unwanted_of(asking: Asking) -> Sequence[DeleteTopicState]:
    """Return the topics to delete; early versions have names only."""
    if asking.version < 6:
        return [DeleteTopicState(name) for name in asking.request.topic_names]
    topics: Sequence[DeleteTopicState] = asking.request.topics
    return topics


# configs


def names_of(asking: Asking) -> list[str]:
    """Return the names of the configs in the request."""
    return [config.name for resource in asking.request.resources for config in resource.configs]


def configs_changed(asking: Asking) -> ConfigsChanged:
    config = asking.config
    return ConfigsChanged(
        TICKET,
        tuple(asking.request.resources),
        config.changed_topic_defaults(),
        asking.request.validate_only,
        None,
        dynamic_of(names_of(asking)),
        config.group_bounds(),
    )


def configs_replaced(asking: Asking) -> ConfigsReplaced:
    config = asking.config
    return ConfigsReplaced(
        TICKET,
        tuple(asking.request.resources),
        asking.request.validate_only,
        None,
        dynamic_of(names_of(asking)),
        config.group_bounds(),
    )


# the rest


def features_response(asking: Asking, answer: Refusal | Mapping[str, Refusal] | None) -> UpdateFeaturesResponse:
    return results_of(asking.request.feature_updates, answer, asking.version)


def features_requested(asking: Asking) -> FeaturesRequested:
    request = asking.request
    is_per_feature = asking.version <= PER_FEATURE_UNTIL
    return FeaturesRequested(TICKET, request.feature_updates, request.validate_only, is_per_feature)


def quotas_response(asking: Asking, refusals: Sequence[Refusal | None]) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(
        entries=[
            EntryData(refusal.code, str(refusal), entry.entity) if refusal else EntryData(0, None, entry.entity)
            for entry, refusal in zip(asking.request.entries, refusals, strict=True)
        ]
    )


def rules_wanted(asking: Asking) -> AclsRequested:
    acls = [create_acls.rule(each) for each in asking.request.creations]
    return AclsRequested(TICKET, acls, [uuid.uuid4() for _ in acls])


KINDS: dict[type[Message], Kind] = {
    AlterClientQuotasRequest: Kind(
        lambda asking: ClientQuotasChanged(TICKET, asking.request.entries, asking.request.validate_only),
        quotas_response,
        lambda request: request.entries,
    ),
    alter_configs.AlterConfigsRequest: Kind(
        configs_replaced,
        lambda asking, reply: alter_configs.AlterConfigsResponse(
            responses=answers(alter_configs.AlterConfigsResourceResponse, asking.request.resources, reply)
        ),
        lambda request: request.resources,
    ),
    AlterUserScramCredentialsRequest: Kind(
        lambda asking: ScramCredentialsRequested(
            TICKET, tuple(asking.request.deletions), tuple(asking.request.upsertions)
        ),
        lambda asking, reply: AlterUserScramCredentialsResponse(results=reply),
        lambda request: (),
    ),
    CreateAclsRequest: Kind(
        rules_wanted,
        lambda asking, reply: CreateAclsResponse(results=[create_acls.result(each) for each in reply]),
        lambda request: request.creations,
    ),
    DeleteAclsRequest: Kind(
        lambda asking: AclsUnwanted(TICKET, [filter_of(each) for each in asking.request.filters]),
        lambda asking, reply: DeleteAclsResponse(filter_results=[delete_acls.result(each) for each in reply]),
        lambda request: request.filters,
    ),
    DeleteTopicsRequest: Kind(
        lambda asking: TopicsUnwanted(TICKET, tuple(unwanted_of(asking))),
        lambda asking, reply: DeleteTopicsResponse(responses=reply),
        lambda request: (),
    ),
    incremental_alter_configs.IncrementalAlterConfigsRequest: Kind(
        configs_changed,
        lambda asking, reply: incremental_alter_configs.IncrementalAlterConfigsResponse(
            responses=answers(incremental_alter_configs.AlterConfigsResourceResponse, asking.request.resources, reply)
        ),
        lambda request: request.resources,
    ),
    UpdateFeaturesRequest: Kind(
        features_requested,
        features_response,
        lambda request: (),
    ),
}
