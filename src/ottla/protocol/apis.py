"""The table of what we speak: a line for each API, whose messages are loaded when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import NamedTuple

from ottla.protocol import messages
from ottla.protocol.schema import Message, Range

NAMES = {
    0: "Produce",
    1: "Fetch",
    2: "ListOffsets",
    3: "Metadata",
    8: "OffsetCommit",
    9: "OffsetFetch",
    10: "FindCoordinator",
    11: "JoinGroup",
    12: "Heartbeat",
    13: "LeaveGroup",
    14: "SyncGroup",
    15: "DescribeGroups",
    16: "ListGroups",
    18: "ApiVersions",
    19: "CreateTopics",
    20: "DeleteTopics",
    21: "DeleteRecords",
    22: "InitProducerId",
    23: "OffsetForLeaderEpoch",
    24: "AddPartitionsToTxn",
    25: "AddOffsetsToTxn",
    26: "EndTxn",
    27: "WriteTxnMarkers",
    28: "TxnOffsetCommit",
    32: "DescribeConfigs",
    33: "AlterConfigs",
    34: "AlterReplicaLogDirs",
    35: "DescribeLogDirs",
    37: "CreatePartitions",
    42: "DeleteGroups",
    43: "ElectLeaders",
    44: "IncrementalAlterConfigs",
    45: "AlterPartitionReassignments",
    46: "ListPartitionReassignments",
    47: "OffsetDelete",
    55: "DescribeQuorum",
    57: "UpdateFeatures",
    60: "DescribeCluster",
    61: "DescribeProducers",
    64: "UnregisterBroker",
    65: "DescribeTransactions",
    66: "ListTransactions",
    68: "ConsumerGroupHeartbeat",
    69: "ConsumerGroupDescribe",
    74: "ListConfigResources",
    75: "DescribeTopicPartitions",
}
"""API key → what Kafka calls it, and what its file and its classes are called after."""

ADVERTISED = {
    # librdkafka before 2.8 gives up compression when Produce does not begin at 0 (KAFKA-18659).
    "Produce": Range(0, 13),
    # Version 6 (two-phase commit) is unstable in Kafka 4.3, which does not advertise it either.
    "InitProducerId": Range(0, 5),
}


class Api(NamedTuple):
    """One kind of request and its answer."""

    key: int
    name: str
    request: type[Message]
    response: type[Message]
    versions: Range
    """The versions we can read and write."""
    flexible: Range

    @property
    def advertised(self) -> Range:
        """The versions a broker says it speaks."""
        return ADVERTISED.get(self.name, self.versions)


class Apis(Mapping[int, Api]):
    """API key → what we know of it."""

    def __init__(self, names: Mapping[int, str]) -> None:
        self._names = names
        self._loaded: dict[int, Api] = {}

    def __getitem__(self, key: int) -> Api:
        api = self._loaded.get(key)
        return api or self._loaded.setdefault(key, load(self._names[key]))

    def __contains__(self, key: object) -> bool:
        return key in self._names

    def __iter__(self) -> Iterator[int]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def load(name: str) -> Api:
    """The API of that name, from the module that is named after it."""
    module = import_module(f"{messages.__name__}.{snake_case(name)}")
    request: type[Message] = getattr(module, f"{name}Request")
    response: type[Message] = getattr(module, f"{name}Response")
    return Api(request.KEY, name, request, response, request.VERSIONS, request.FLEXIBLE)


def snake_case(name: str) -> str:
    """`ListOffsets` → `list_offsets`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


APIS = Apis(NAMES)


def api_of(message: Message | type[Message]) -> Api:
    """The API that a request or response, or the class of one, belongs to."""
    return APIS[message.KEY]
