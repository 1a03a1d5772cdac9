"""The table of supported APIs; the messages of each are imported when it is first used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import NamedTuple

from ottla.protocol import messages
from ottla.protocol.schema import Message, Range


class Declared(NamedTuple):
    """An API with a file in `messages/`: its properties that are known without importing it."""

    key: int
    name: str
    """Kafka's name, from which the names of its file and its classes are derived."""
    versions: Range
    to_controller: bool = False
    """True if only controllers serve it, to brokers or other controllers, and no broker listener does."""
    is_forwarded: bool = False
    """True if a broker forwards it to the active controller, which decides it (KIP-590)."""
    is_served: bool = True
    """False while only its messages exist here: no node serves it or advertises it."""

    @property
    def advertised(self) -> Range:
        """The versions that a broker advertises."""
        return ADVERTISED.get(self.name, self.versions)


DECLARED = {
    each.key: each
    for each in (
        Declared(0, "Produce", Range(3, 13)),
        Declared(1, "Fetch", Range(4, 18)),
        Declared(2, "ListOffsets", Range(1, 11)),
        Declared(3, "Metadata", Range(0, 13)),
        Declared(8, "OffsetCommit", Range(2, 10)),
        Declared(9, "OffsetFetch", Range(1, 10)),
        Declared(10, "FindCoordinator", Range(0, 6)),
        Declared(11, "JoinGroup", Range(0, 9)),
        Declared(12, "Heartbeat", Range(0, 4)),
        Declared(13, "LeaveGroup", Range(0, 5)),
        Declared(14, "SyncGroup", Range(0, 5)),
        Declared(15, "DescribeGroups", Range(0, 6)),
        Declared(16, "ListGroups", Range(0, 5)),
        Declared(17, "SaslHandshake", Range(0, 1)),
        Declared(18, "ApiVersions", Range(0, 5)),
        Declared(19, "CreateTopics", Range(2, 7), is_forwarded=True),
        Declared(20, "DeleteTopics", Range(1, 6), is_forwarded=True),
        Declared(21, "DeleteRecords", Range(0, 2)),
        Declared(22, "InitProducerId", Range(0, 6)),
        Declared(23, "OffsetForLeaderEpoch", Range(2, 4)),
        Declared(24, "AddPartitionsToTxn", Range(0, 5)),
        Declared(25, "AddOffsetsToTxn", Range(0, 4)),
        Declared(26, "EndTxn", Range(0, 5)),
        Declared(27, "WriteTxnMarkers", Range(1, 2)),
        Declared(28, "TxnOffsetCommit", Range(0, 6)),
        Declared(29, "DescribeAcls", Range(1, 3)),
        Declared(30, "CreateAcls", Range(1, 3), is_forwarded=True),
        Declared(31, "DeleteAcls", Range(1, 3), is_forwarded=True),
        Declared(32, "DescribeConfigs", Range(1, 4)),
        Declared(33, "AlterConfigs", Range(0, 2), is_forwarded=True),
        Declared(34, "AlterReplicaLogDirs", Range(1, 2)),
        Declared(35, "DescribeLogDirs", Range(1, 5)),
        Declared(36, "SaslAuthenticate", Range(0, 2)),
        Declared(37, "CreatePartitions", Range(0, 3), is_forwarded=True),
        Declared(38, "CreateDelegationToken", Range(1, 3), is_forwarded=True),
        Declared(39, "RenewDelegationToken", Range(1, 2), is_forwarded=True),
        Declared(40, "ExpireDelegationToken", Range(1, 2), is_forwarded=True),
        Declared(41, "DescribeDelegationToken", Range(1, 3)),
        Declared(42, "DeleteGroups", Range(0, 3)),
        Declared(43, "ElectLeaders", Range(0, 2), is_forwarded=True),
        Declared(44, "IncrementalAlterConfigs", Range(0, 1), is_forwarded=True),
        Declared(45, "AlterPartitionReassignments", Range(0, 1), is_forwarded=True),
        Declared(46, "ListPartitionReassignments", Range(0, 0), is_forwarded=True),
        Declared(47, "OffsetDelete", Range(0, 0)),
        Declared(48, "DescribeClientQuotas", Range(0, 1)),
        Declared(49, "AlterClientQuotas", Range(0, 1), is_forwarded=True),
        Declared(50, "DescribeUserScramCredentials", Range(0, 0)),
        Declared(51, "AlterUserScramCredentials", Range(0, 0), is_forwarded=True),
        Declared(52, "Vote", Range(0, 2), to_controller=True),
        Declared(53, "BeginQuorumEpoch", Range(0, 1), to_controller=True),
        Declared(54, "EndQuorumEpoch", Range(0, 1), to_controller=True),
        Declared(55, "DescribeQuorum", Range(0, 2), is_forwarded=True),
        Declared(56, "AlterPartition", Range(2, 3), to_controller=True),
        Declared(57, "UpdateFeatures", Range(0, 2), is_forwarded=True),
        Declared(58, "Envelope", Range(0, 0), to_controller=True),
        Declared(59, "FetchSnapshot", Range(0, 1), to_controller=True),
        Declared(60, "DescribeCluster", Range(0, 2)),
        Declared(61, "DescribeProducers", Range(0, 0)),
        Declared(62, "BrokerRegistration", Range(0, 4), to_controller=True),
        Declared(63, "BrokerHeartbeat", Range(0, 2), to_controller=True),
        Declared(64, "UnregisterBroker", Range(0, 0), is_forwarded=True),
        Declared(65, "DescribeTransactions", Range(0, 0)),
        Declared(66, "ListTransactions", Range(0, 2)),
        Declared(67, "AllocateProducerIds", Range(0, 0), to_controller=True),
        Declared(68, "ConsumerGroupHeartbeat", Range(0, 1)),
        Declared(69, "ConsumerGroupDescribe", Range(0, 1)),
        Declared(70, "ControllerRegistration", Range(0, 0), to_controller=True),
        Declared(71, "GetTelemetrySubscriptions", Range(0, 0)),
        Declared(72, "PushTelemetry", Range(0, 0)),
        Declared(73, "AssignReplicasToDirs", Range(0, 0), to_controller=True),
        Declared(74, "ListConfigResources", Range(0, 1)),
        Declared(75, "DescribeTopicPartitions", Range(0, 0)),
        Declared(76, "ShareGroupHeartbeat", Range(1, 1)),
        Declared(77, "ShareGroupDescribe", Range(1, 1)),
        Declared(78, "ShareFetch", Range(1, 2)),
        Declared(79, "ShareAcknowledge", Range(1, 2)),
        Declared(80, "AddRaftVoter", Range(0, 1), is_forwarded=True),
        Declared(81, "RemoveRaftVoter", Range(0, 0), is_forwarded=True),
        Declared(82, "UpdateRaftVoter", Range(0, 0), to_controller=True),
        Declared(83, "InitializeShareGroupState", Range(0, 0)),
        Declared(84, "ReadShareGroupState", Range(0, 0)),
        Declared(85, "WriteShareGroupState", Range(0, 1)),
        Declared(86, "DeleteShareGroupState", Range(0, 0)),
        Declared(87, "ReadShareGroupStateSummary", Range(0, 1)),
        Declared(88, "StreamsGroupHeartbeat", Range(0, 1)),
        Declared(89, "StreamsGroupDescribe", Range(0, 1)),
        Declared(90, "DescribeShareGroupOffsets", Range(0, 1)),
        Declared(91, "AlterShareGroupOffsets", Range(0, 0)),
        Declared(92, "DeleteShareGroupOffsets", Range(0, 0)),
        Declared(93, "StreamsGroupTopologyDescriptionUpdate", Range(0, 0)),
        Declared(94, "UnregisterController", Range(0, 0), is_forwarded=True),
    )
}
"""The declared APIs by key."""
NOT_SERVED = {key: each for key, each in DECLARED.items() if not each.is_served}
"""The declared APIs that no node serves yet."""
SERVED = {key: each for key, each in DECLARED.items() if each.is_served and not each.to_controller}
"""The APIs that a broker's listeners serve and ApiVersions lists."""

ADVERTISED = {
    # librdkafka before 2.8 disables compression when Produce does not start at version 0 (KAFKA-18659).
    "Produce": Range(0, 13),
    # Version 6 (two-phase commit) is unstable in Kafka 4.4, which does not advertise it either.
    "InitProducerId": Range(0, 5),
}

ELSEWHERE: Mapping[int, str] = {key: each.name for key, each in DECLARED.items() if key not in SERVED} | {
    4: "LeaderAndIsr",
    5: "StopReplica",
    6: "UpdateMetadata",
    7: "ControlledShutdown",
}
"""Names of Kafka's present and former APIs that Ottla's brokers do not serve, for error messages."""


class Api(NamedTuple):
    """One API: its request and its response."""

    key: int
    name: str
    request: type[Message]
    response: type[Message]
    versions: Range
    """The supported versions."""
    flexible: Range


class Apis(Mapping[int, Api]):
    """A mapping from API key to API that imports the messages of each on first access."""

    def __init__(self, declared: Mapping[int, Declared]) -> None:
        self._declared = declared
        self._loaded: dict[int, Api] = {}

    def __getitem__(self, key: int) -> Api:
        api = self._loaded.get(key)
        return api or self._loaded.setdefault(key, load(self._declared[key].name))

    def __contains__(self, key: object) -> bool:
        return key in self._declared

    def __iter__(self) -> Iterator[int]:
        return iter(self._declared)

    def __len__(self) -> int:
        return len(self._declared)


def load(name: str) -> Api:
    """Return the API of that name, from the module named after it."""
    module = import_module(f"{messages.__name__}.{snake_case(name)}")
    request: type[Message] = getattr(module, f"{name}Request")
    response: type[Message] = getattr(module, f"{name}Response")
    return Api(request.KEY, name, request, response, request.VERSIONS, request.FLEXIBLE)


def snake_case(name: str) -> str:
    """Return the snake-case form of a name: `list_offsets` for `ListOffsets`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


APIS = Apis(DECLARED)


def api_of(message: Message | type[Message]) -> Api:
    """Return the API of a request, a response, or a class of one."""
    return APIS[message.KEY]
