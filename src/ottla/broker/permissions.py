"""What each API needs: one table, a row for every API that is spoken.

A need is for the whole request, and then it is looked at here, before the handler; or for each thing that is named, or
for what is shown, and then by the handler, which answers for the others. Loaded where there is an authorizer.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

from ottla.broker import denials
from ottla.broker.access import Access
from ottla.broker.requests.call import Call
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
"""What is said to who may not, by the kind of resource."""


class Scope(Enum):
    """How much of a request a need is for."""

    WHOLE = "whole"
    """All of it: refused before the handler sees it."""
    EACH = "each"
    """Each thing that it names: the handler refuses those."""
    SHOWN = "shown"
    """Each thing that would be told of unasked: the handler leaves those out."""


class Need(NamedTuple):
    """What who asks must be allowed; one of several operations is enough."""

    operations: tuple[Operation, ...]
    kind: ResourceType
    scope: Scope
    named: str = ""
    """The field of the request that names the resource; the cluster needs none."""


Row = tuple[Need, ...]


def whole(*operations: Operation, on: ResourceType = CLUSTER, named: str = "") -> Need:
    return Need(operations, on, Scope.WHOLE, named)


def each(*operations: Operation, on: ResourceType) -> Need:
    return Need(operations, on, Scope.EACH)


def shown(*operations: Operation, on: ResourceType) -> Need:
    return Need(operations, on, Scope.SHOWN)


MEMBER = (whole(READ, on=GROUP, named="group_id"),)
OF_TRANSACTION = whole(WRITE, on=TRANSACTIONAL_ID, named="transactional_id")
CONFIGS = (TOPIC, GROUP, CLUSTER)
PERMISSIONS: Mapping[str, Row] = {
    # Records.
    "Produce": (each(WRITE, on=TOPIC), each(WRITE, on=TRANSACTIONAL_ID)),
    "Fetch": (each(READ, on=TOPIC), each(CLUSTER_ACTION, on=CLUSTER)),  # the second for copies of other brokers
    "ListOffsets": (each(DESCRIBE, on=TOPIC),),
    "OffsetForLeaderEpoch": (each(DESCRIBE, on=TOPIC), each(CLUSTER_ACTION, on=CLUSTER)),  # either
    "DeleteRecords": (each(DELETE, on=TOPIC),),
    # The cluster.
    "ApiVersions": (),
    "Metadata": (each(DESCRIBE, on=TOPIC), shown(DESCRIBE, on=TOPIC), each(CREATE, on=CLUSTER), each(CREATE, on=TOPIC)),
    "DescribeCluster": (shown(DESCRIBE, on=CLUSTER),),  # for the operations that are allowed
    "DescribeTopicPartitions": (each(DESCRIBE, on=TOPIC), shown(DESCRIBE, on=TOPIC)),
    "DescribeQuorum": (whole(DESCRIBE),),
    "DescribeLogDirs": (whole(DESCRIBE),),
    "AlterReplicaLogDirs": (whole(ALTER),),
    "ElectLeaders": (whole(ALTER),),
    "AlterPartitionReassignments": (whole(ALTER),),
    "ListPartitionReassignments": (whole(DESCRIBE),),
    "UpdateFeatures": (whole(ALTER),),
    "UnregisterBroker": (whole(ALTER),),
    "AddRaftVoter": (whole(ALTER),),
    "RemoveRaftVoter": (whole(ALTER),),
    # Topics and configs.
    "CreateTopics": (each(CREATE, on=CLUSTER), each(CREATE, on=TOPIC), shown(DESCRIBE_CONFIGS, on=TOPIC)),
    "DeleteTopics": (each(DELETE, on=TOPIC), shown(DESCRIBE, on=TOPIC)),
    "CreatePartitions": (each(ALTER, on=TOPIC),),
    "DescribeConfigs": tuple(each(DESCRIBE_CONFIGS, on=kind) for kind in CONFIGS),
    "AlterConfigs": tuple(each(ALTER_CONFIGS, on=kind) for kind in CONFIGS),
    "IncrementalAlterConfigs": tuple(each(ALTER_CONFIGS, on=kind) for kind in CONFIGS),
    "ListConfigResources": (whole(DESCRIBE_CONFIGS),),
    # Whoever is connected may push metrics that somebody who may alter the cluster has asked for.
    "GetTelemetrySubscriptions": (),
    "PushTelemetry": (),
    # Groups.
    "FindCoordinator": (each(DESCRIBE, on=GROUP), each(DESCRIBE, on=TRANSACTIONAL_ID)),
    "JoinGroup": MEMBER,
    "SyncGroup": MEMBER,
    "Heartbeat": MEMBER,
    "LeaveGroup": MEMBER,
    "ConsumerGroupHeartbeat": (*MEMBER, each(DESCRIBE, on=TOPIC), shown(DESCRIBE, on=TOPIC)),
    "OffsetCommit": (*MEMBER, each(READ, on=TOPIC)),
    "OffsetFetch": (each(DESCRIBE, on=GROUP), each(DESCRIBE, on=TOPIC), shown(DESCRIBE, on=TOPIC)),
    "OffsetDelete": (whole(DELETE, on=GROUP, named="group_id"), each(READ, on=TOPIC)),
    "DescribeGroups": (each(DESCRIBE, on=GROUP),),
    "ConsumerGroupDescribe": (each(DESCRIBE, on=GROUP), shown(DESCRIBE, on=TOPIC)),
    "ListGroups": (shown(DESCRIBE, on=CLUSTER), shown(DESCRIBE, on=GROUP)),
    "DeleteGroups": (each(DELETE, on=GROUP),),
    # Producers and transactions.
    "InitProducerId": (each(WRITE, on=TRANSACTIONAL_ID), each(IDEMPOTENT_WRITE, on=CLUSTER), each(WRITE, on=TOPIC)),
    "AddPartitionsToTxn": (
        each(WRITE, on=TRANSACTIONAL_ID),
        each(WRITE, on=TOPIC),
        each(CLUSTER_ACTION, on=CLUSTER),  # in the versions that brokers ask by
    ),
    "AddOffsetsToTxn": (OF_TRANSACTION, *MEMBER),
    "EndTxn": (OF_TRANSACTION,),
    "TxnOffsetCommit": (OF_TRANSACTION, *MEMBER, each(READ, on=TOPIC)),
    "WriteTxnMarkers": (whole(ALTER, CLUSTER_ACTION),),
    "DescribeProducers": (each(READ, on=TOPIC),),
    "DescribeTransactions": (each(DESCRIBE, on=TRANSACTIONAL_ID), shown(DESCRIBE, on=TOPIC)),
    "ListTransactions": (shown(DESCRIBE, on=TRANSACTIONAL_ID),),
    # Who is there, and what they may do.
    "SaslHandshake": (),
    "SaslAuthenticate": (),
    "DescribeAcls": (whole(DESCRIBE),),
    "CreateAcls": (whole(ALTER),),
    "DeleteAcls": (whole(ALTER),),
    # Who has a token may renew it and have it end.
    "CreateDelegationToken": (each(CREATE_TOKENS, on=USER),),  # for somebody else
    "RenewDelegationToken": (),
    "ExpireDelegationToken": (),
    "DescribeDelegationToken": (shown(DESCRIBE, on=DELEGATION_TOKEN), shown(DESCRIBE_TOKENS, on=USER)),  # either
    "DescribeUserScramCredentials": (whole(DESCRIBE),),
    "AlterUserScramCredentials": (whole(ALTER),),
    "DescribeClientQuotas": (whole(DESCRIBE_CONFIGS),),
    "AlterClientQuotas": (whole(ALTER_CONFIGS),),
}
"""By the API's name: all that is needed."""
WHOLE = {key: tuple(need for need in PERMISSIONS[api.name] if need.scope is Scope.WHOLE) for key, api in SERVED.items()}
"""By the API's key: what is looked at before the handler."""


def refusal(access: Access, call: Call, request: Any) -> Message | None:
    """The answer to a request that may not be carried out, for want of something that all of it needs."""
    key = call.header.api_key
    for need in WHOLE[key]:
        name = getattr(request, need.named) if need.named else CLUSTER_NAME
        if not any(access.allows(call, operation, need.kind, name) for operation in need.operations):
            wanted = " or ".join(operation.name for operation in need.operations)
            sentence = f"{wanted} is not allowed on {need.kind.name.lower().replace('_', ' ')} {name!r}"
            return denials.denial(key, call.version, request, CODES[need.kind], sentence)
    return None
