"""What the broker does for each request: one module for each API, named as its message is, loaded when first asked for.

What ApiVersions tells clients is made from this table, so it cannot say more than there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call, Outcome
from ottla.protocol.apis import ACCEPTED_BEYOND, APIS, SERVED, Api, snake_case
from ottla.protocol.messages.api_versions import ApiVersion
from ottla.protocol.schema import Message, Range

Handle = Callable[[BrokerNode, Call, Any], Message | Outcome]
"""Answers a request, at once or later."""


class Line(NamedTuple):
    """An API that is spoken here."""

    api: Api
    handle: Handle
    versions: Range
    """The versions that are taken."""


class Handlers(Mapping[int, Line]):
    """API key → who answers."""

    def __init__(self) -> None:
        self._keys = list(SERVED)
        self._loaded: dict[int, Line] = {}

    def __getitem__(self, key: int) -> Line:
        found = self._loaded.get(key)
        if found is None:
            if key not in self._keys:
                raise KeyError(key)
            found = self._loaded[key] = load(key)
        return found

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __iter__(self) -> Iterator[int]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


def load(key: int) -> Line:
    """A line of the table: the versions are those that can be read and are told to clients."""
    api, advertised = APIS[key], SERVED[key].advertised
    handle = import_module(f"{__name__}.{snake_case(api.name)}").handle
    last = api.versions.last if api.name in ACCEPTED_BEYOND else min(api.versions.last, advertised.last)
    return Line(api, handle, Range(max(api.versions.first, advertised.first), last))


HANDLERS = Handlers()


FORWARDED = frozenset(
    (
        "CreateTopics",
        "DeleteTopics",
        "CreateAcls",
        "DeleteAcls",
        "AlterConfigs",
        "CreateDelegationToken",
        "RenewDelegationToken",
        "ExpireDelegationToken",
        "CreatePartitions",
        "ElectLeaders",
        "IncrementalAlterConfigs",
        "AlterPartitionReassignments",
        "ListPartitionReassignments",
        "AlterClientQuotas",
        "AlterUserScramCredentials",
        "DescribeQuorum",
        "UpdateFeatures",
        "UnregisterBroker",
        "AddRaftVoter",
        "RemoveRaftVoter",
    )
)
"""What a broker of a cluster hands on to the controllers."""
OF_GROUPS = frozenset(
    (
        "ConsumerGroupDescribe",
        "ConsumerGroupHeartbeat",
        "DeleteGroups",
        "DescribeGroups",
        "Heartbeat",
        "JoinGroup",
        "LeaveGroup",
        "ListGroups",
        "OffsetCommit",
        "OffsetDelete",
        "OffsetFetch",
        "SyncGroup",
        "TxnOffsetCommit",
    )
)
"""What the coordinator of a group serves, who is the leader of the partition in which the group is kept."""
OF_TRANSACTIONS = frozenset(
    (
        "AddOffsetsToTxn",
        "AddPartitionsToTxn",
        "DescribeTransactions",
        "EndTxn",
        "InitProducerId",
        "ListTransactions",
        "WriteTxnMarkers",
    )
)
"""What the coordinator of a transactional id serves, and between it and those who lead partitions."""
JOINED = (
    FORWARDED
    | OF_GROUPS
    | OF_TRANSACTIONS
    | {
        "AlterReplicaLogDirs",
        "ApiVersions",
        "DeleteRecords",
        "DescribeAcls",
        "DescribeClientQuotas",
        "DescribeCluster",
        "DescribeConfigs",
        "DescribeDelegationToken",
        "DescribeLogDirs",
        "DescribeProducers",
        "DescribeTopicPartitions",
        "DescribeUserScramCredentials",
        "Fetch",
        "FindCoordinator",
        "GetTelemetrySubscriptions",
        "ListConfigResources",
        "ListOffsets",
        "Metadata",
        "OffsetForLeaderEpoch",
        "Produce",
        "PushTelemetry",
        "SaslAuthenticate",
        "SaslHandshake",
    }
)
"""What a broker of a cluster serves: what its copy of the metadata answers, and what concerns partitions."""


def is_spoken(name: str, *, joins: bool) -> bool:
    """Whether a broker, alone or of a cluster, serves an API."""
    return not joins or name in JOINED


OF_TELEMETRY = frozenset(("GetTelemetrySubscriptions", "PushTelemetry"))
"""What clients do unasked as soon as they are told of it; librdkafka writes a line about it for each client."""


def spoken_versions(*, joins: bool = False, shows_metrics: bool = False) -> list[ApiVersion]:
    """The table as ApiVersions tells it; of metrics of clients nothing where nobody could see them, as Kafka does."""
    untold = frozenset[str]() if shows_metrics else OF_TELEMETRY
    names = {key: SERVED[key].name for key in sorted(HANDLERS)}
    keys = [key for key, name in names.items() if is_spoken(name, joins=joins) and name not in untold]
    return [ApiVersion(key, *SERVED[key].advertised) for key in keys]


def guarded(node: BrokerNode, line: Line, call: Call, request: Any) -> Message | Outcome:
    """What a handler answers, or that who calls may not ask for that."""
    from ottla.broker import permissions  # which loads many messages, and only where there is an authorizer

    assert node.access is not None
    refusal = permissions.refusal(node.access, call, request)
    return line.handle(node, call, request) if refusal is None else refusal
