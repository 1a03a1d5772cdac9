"""The permissions of each API: one table, with a row for every API that is served.

A need applies to the whole request, and is checked here before the handler. Or it applies to each resource that the request
names or the response would contain; then the handler checks it, and processes the other resources. Loaded only with an
authorizer.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

from ottla.broker.apis import authorization_errors
from ottla.broker.network_server.call import Call
from ottla.broker.security.authorization import Access
from ottla.errors import ErrorCode
from ottla.protocol.acl import CLUSTER_NAME, Operation, ResourceType
from ottla.protocol.apis import SERVED
from ottla.protocol.schema import Message

CLUSTER, GROUP, TOPIC = ResourceType.CLUSTER, ResourceType.GROUP, ResourceType.TOPIC
TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID
DELEGATION_TOKEN, USER = ResourceType.DELEGATION_TOKEN, ResourceType.USER
READ, WRITE, CREATE, DELETE = Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DELETE
ALTER, DESCRIBE, CLUSTER_ACTION = Operation.ALTER, Operation.DESCRIBE, Operation.CLUSTER_ACTION
DESCRIBE_CONFIGS, ALTER_CONFIGS = Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS
IDEMPOTENT_WRITE = Operation.IDEMPOTENT_WRITE
CREATE_TOKENS, DESCRIBE_TOKENS = Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS
CODES = {
    TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
"""The error codes of denials, by the type of resource."""


class Scope(Enum):
    """The part of a request that a need applies to."""

    WHOLE = "whole"
    """The whole request: it is denied before the handler is called."""
    EACH = "each"
    """Each resource in the request: the handler denies those."""
    SHOWN = "shown"
    """Each resource that would be returned without being named: the handler omits those."""


class Need(NamedTuple):
    """The operations that a client must be authorized for; one of them is enough."""

    operations: tuple[Operation, ...]
    kind: ResourceType
    scope: Scope
    named: str = ""
    """The field of the request that names the resource; the cluster needs none."""


Row = tuple[Need, ...]


def need_all(*operations: Operation, on: ResourceType = CLUSTER, named: str = "") -> Need:
    return Need(operations, on, Scope.WHOLE, named)


def need_each(*operations: Operation, on: ResourceType) -> Need:
    return Need(operations, on, Scope.EACH)


def need_visible(*operations: Operation, on: ResourceType) -> Need:
    return Need(operations, on, Scope.SHOWN)


MEMBER = (need_all(READ, on=GROUP, named="group_id"),)
OF_TRANSACTION = need_all(WRITE, on=TRANSACTIONAL_ID, named="transactional_id")
CONFIGS = (TOPIC, GROUP, CLUSTER)
PERMISSIONS: Mapping[str, Row] = {
    # Records.
    "Produce": (need_each(WRITE, on=TOPIC), need_each(WRITE, on=TRANSACTIONAL_ID)),
    "Fetch": (need_each(READ, on=TOPIC), need_each(CLUSTER_ACTION, on=CLUSTER)),  # the second for followers
    "ListOffsets": (need_each(DESCRIBE, on=TOPIC),),
    "OffsetForLeaderEpoch": (need_each(DESCRIBE, on=TOPIC), need_each(CLUSTER_ACTION, on=CLUSTER)),  # either
    "DeleteRecords": (need_each(DELETE, on=TOPIC),),
    # The cluster.
    "ApiVersions": (),
    "Metadata": (
        need_each(DESCRIBE, on=TOPIC),
        need_visible(DESCRIBE, on=TOPIC),
        need_each(CREATE, on=CLUSTER),
        need_each(CREATE, on=TOPIC),
    ),
    "DescribeCluster": (need_visible(DESCRIBE, on=CLUSTER),),  # for the operations that are allowed
    "DescribeTopicPartitions": (need_each(DESCRIBE, on=TOPIC), need_visible(DESCRIBE, on=TOPIC)),
    "DescribeQuorum": (need_all(DESCRIBE),),
    "DescribeLogDirs": (need_all(DESCRIBE),),
    "AlterReplicaLogDirs": (need_all(ALTER),),
    "ElectLeaders": (need_all(ALTER),),
    "AlterPartitionReassignments": (need_all(ALTER),),
    "ListPartitionReassignments": (need_all(DESCRIBE),),
    "UpdateFeatures": (need_all(ALTER),),
    "UnregisterBroker": (need_all(ALTER),),
    "UnregisterController": (need_all(ALTER),),
    "AddRaftVoter": (need_all(ALTER),),
    "RemoveRaftVoter": (need_all(ALTER),),
    # Topics and configs.
    "CreateTopics": (
        need_each(CREATE, on=CLUSTER),
        need_each(CREATE, on=TOPIC),
        need_visible(DESCRIBE_CONFIGS, on=TOPIC),
    ),
    "DeleteTopics": (need_each(DELETE, on=TOPIC), need_visible(DESCRIBE, on=TOPIC)),
    "CreatePartitions": (need_each(ALTER, on=TOPIC),),
    "DescribeConfigs": tuple(need_each(DESCRIBE_CONFIGS, on=kind) for kind in CONFIGS),
    "AlterConfigs": tuple(need_each(ALTER_CONFIGS, on=kind) for kind in CONFIGS),
    "IncrementalAlterConfigs": tuple(need_each(ALTER_CONFIGS, on=kind) for kind in CONFIGS),
    "ListConfigResources": (need_all(DESCRIBE_CONFIGS),),
    # Every client may push the metrics of subscriptions, which require ALTER on the cluster.
    "GetTelemetrySubscriptions": (),
    "PushTelemetry": (),
    # Groups.
    "FindCoordinator": (
        need_each(DESCRIBE, on=GROUP),
        need_each(DESCRIBE, on=TRANSACTIONAL_ID),
        need_each(CLUSTER_ACTION, on=CLUSTER),  # for partitions of share groups
    ),
    "JoinGroup": MEMBER,
    "SyncGroup": MEMBER,
    "Heartbeat": MEMBER,
    "LeaveGroup": MEMBER,
    "ConsumerGroupHeartbeat": (*MEMBER, need_each(DESCRIBE, on=TOPIC), need_visible(DESCRIBE, on=TOPIC)),
    "OffsetCommit": (*MEMBER, need_each(READ, on=TOPIC)),
    "OffsetFetch": (need_each(DESCRIBE, on=GROUP), need_each(DESCRIBE, on=TOPIC), need_visible(DESCRIBE, on=TOPIC)),
    "OffsetDelete": (need_all(DELETE, on=GROUP, named="group_id"), need_each(READ, on=TOPIC)),
    "DescribeGroups": (need_each(DESCRIBE, on=GROUP),),
    "ConsumerGroupDescribe": (need_each(DESCRIBE, on=GROUP), need_visible(DESCRIBE, on=TOPIC)),
    "ListGroups": (need_visible(DESCRIBE, on=CLUSTER), need_visible(DESCRIBE, on=GROUP)),
    "DeleteGroups": (need_each(DELETE, on=GROUP),),
    # Share groups. The states of records are for brokers.
    "ShareGroupHeartbeat": (*MEMBER, need_each(DESCRIBE, on=TOPIC)),
    "ShareGroupDescribe": (need_each(DESCRIBE, on=GROUP), need_visible(DESCRIBE, on=TOPIC)),
    "ShareFetch": (need_each(READ, on=GROUP), need_each(READ, on=TOPIC)),
    "ShareAcknowledge": (need_each(READ, on=GROUP), need_each(READ, on=TOPIC)),
    "DescribeShareGroupOffsets": (
        need_each(DESCRIBE, on=GROUP),
        need_each(DESCRIBE, on=TOPIC),
        need_visible(DESCRIBE, on=TOPIC),
    ),
    "AlterShareGroupOffsets": (need_each(READ, on=GROUP), need_each(READ, on=TOPIC)),
    "DeleteShareGroupOffsets": (need_each(DELETE, on=GROUP), need_each(READ, on=TOPIC)),
    "InitializeShareGroupState": (need_all(CLUSTER_ACTION),),
    "ReadShareGroupState": (need_all(CLUSTER_ACTION),),
    "WriteShareGroupState": (need_all(CLUSTER_ACTION),),
    "DeleteShareGroupState": (need_all(CLUSTER_ACTION),),
    "ReadShareGroupStateSummary": (need_all(CLUSTER_ACTION),),
    # Streams groups, which have their internal topics created.
    "StreamsGroupHeartbeat": (
        *MEMBER,
        need_each(DESCRIBE, on=TOPIC),
        need_each(CREATE, on=CLUSTER),
        need_each(CREATE, on=TOPIC),
    ),
    "StreamsGroupDescribe": (need_each(DESCRIBE, on=GROUP), need_visible(DESCRIBE, on=TOPIC)),
    "StreamsGroupTopologyDescriptionUpdate": MEMBER,
    # Producers and transactions.
    "InitProducerId": (
        need_each(WRITE, on=TRANSACTIONAL_ID),
        need_each(IDEMPOTENT_WRITE, on=CLUSTER),
        need_each(WRITE, on=TOPIC),
    ),
    "AddPartitionsToTxn": (
        need_each(WRITE, on=TRANSACTIONAL_ID),
        need_each(WRITE, on=TOPIC),
        need_each(CLUSTER_ACTION, on=CLUSTER),  # in versions that brokers send
    ),
    "AddOffsetsToTxn": (OF_TRANSACTION, *MEMBER),
    "EndTxn": (OF_TRANSACTION,),
    "TxnOffsetCommit": (OF_TRANSACTION, *MEMBER, need_each(READ, on=TOPIC)),
    "WriteTxnMarkers": (need_all(ALTER, CLUSTER_ACTION),),
    "DescribeProducers": (need_each(READ, on=TOPIC),),
    "DescribeTransactions": (need_each(DESCRIBE, on=TRANSACTIONAL_ID), need_visible(DESCRIBE, on=TOPIC)),
    "ListTransactions": (need_visible(DESCRIBE, on=TRANSACTIONAL_ID),),
    # Authentication, ACLs, users and tokens.
    "SaslHandshake": (),
    "SaslAuthenticate": (),
    "DescribeAcls": (need_all(DESCRIBE),),
    "CreateAcls": (need_all(ALTER),),
    "DeleteAcls": (need_all(ALTER),),
    # The owner of a token may renew and expire it.
    "CreateDelegationToken": (need_each(CREATE_TOKENS, on=USER),),  # for another owner
    "RenewDelegationToken": (),
    "ExpireDelegationToken": (),
    "DescribeDelegationToken": (
        need_visible(DESCRIBE, on=DELEGATION_TOKEN),
        need_visible(DESCRIBE_TOKENS, on=USER),
    ),  # either
    "DescribeUserScramCredentials": (need_all(DESCRIBE),),
    "AlterUserScramCredentials": (need_all(ALTER),),
    "DescribeClientQuotas": (need_all(DESCRIBE_CONFIGS),),
    "AlterClientQuotas": (need_all(ALTER_CONFIGS),),
}
"""All needs, by the name of the API."""
WHOLE = {key: tuple(need for need in PERMISSIONS[api.name] if need.scope is Scope.WHOLE) for key, api in SERVED.items()}
"""The needs that are checked before the handler, by the key of the API."""


def find_refusal(access: Access, call: Call, request: Any) -> Message | None:
    """Return the response if the client is not authorized for the whole request, else None."""
    key = call.header.api_key
    for need in WHOLE[key]:
        name = getattr(request, need.named) if need.named else CLUSTER_NAME
        if not any(access.allows(call, operation, need.kind, name) for operation in need.operations):
            wanted = " or ".join(operation.name for operation in need.operations)
            sentence = f"{wanted} is not allowed on {need.kind.name.lower().replace('_', ' ')} {name!r}"
            return authorization_errors.build_denial(key, call.version, request, CODES[need.kind], sentence)
    return None
