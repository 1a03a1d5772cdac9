"""The API versions that each broker supports, and the choice of the version to use.

Pure. `ApiVersions` has the responses of all brokers by node id, `NodeApiVersions` that of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ottla.errors import UnsupportedVersionError
from ottla.protocol.apis import APIS, Api
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest

VOTE_KEY = 52
"""The key of Vote, which only controllers have."""
NEWEST = APIS[ApiVersionsRequest.KEY].versions.last
OLDEST = {MetadataRequest.KEY: 4, SaslHandshakeRequest.KEY: 1}
"""The oldest version that will do, where older ones exist: before 4 Metadata could not but make the topics it
names, and after SaslHandshake 0 the login would be no requests."""


class NodeApiVersions:
    """The version ranges that one broker supports."""

    def __init__(
        self, broker: str, ranges: Iterable[tuple[int, int, int]] = (), features: Mapping[str, int] | None = None
    ) -> None:
        self._broker = broker
        self._ranges = {key: (first, last) for key, first, last in ranges}
        self.features = features or {}
        """The levels at which the whole cluster runs its features (KIP-584)."""

    def newest_version(self, key: int) -> int | None:
        """Return the newest version the broker speaks of an API, by the API's key; None when it does not have it."""
        spoken = self._ranges.get(key)
        return None if spoken is None else spoken[1]

    def usable_version(self, api: Api, most: int | None = None) -> int:
        """Return the newest version both sides speak, not above `most`; UnsupportedVersionError names what clashes."""
        first = max(api.versions.first, OLDEST.get(api.key, 0))
        last = api.versions.last if most is None else min(most, api.versions.last)
        spoken = self._ranges.get(api.key)
        if spoken is None:
            if api.name == "Metadata" and VOTE_KEY in self._ranges:
                raise UnsupportedVersionError(
                    f"{self._broker} is a listener of a controller: name one of a broker in bootstrap.servers"
                )
            raise UnsupportedVersionError(
                f"the broker {self._broker} does not have {api.name}: "
                f"its Kafka is too old for this client, or the API is switched off"
            )
        version = min(last, spoken[1])
        if version < max(first, spoken[0]):
            age = "too old" if spoken[1] < first else "too new"
            raise UnsupportedVersionError(
                f"the broker {self._broker} speaks {api.name} {spoken[0]} to {spoken[1]}, this client {first} to "
                f"{last}: its Kafka is {age} (Ottla needs 2.1 or newer)"
            )
        return version


class ApiVersions:
    """The API versions of all connected brokers."""

    def __init__(self) -> None:
        self._nodes: dict[int, NodeApiVersions] = {}

    def update(self, node_id: int, versions: NodeApiVersions) -> None:
        """Store a broker's response."""
        self._nodes[node_id] = versions

    def remove(self, node_id: int) -> None:
        """Forget a broker without a connection: it may restart with another version."""
        self._nodes.pop(node_id, None)

    def get(self, node_id: int) -> NodeApiVersions | None:
        """Return a broker's API versions; None before its ApiVersions response."""
        return self._nodes.get(node_id)


def choose_next_version(answer: ApiVersionsResponse, refused: int) -> int | None:
    """Return the version to ask in after `refused` was refused; None when there is none left."""
    offered = next((a.max_version for a in answer.api_keys if a.api_key == ApiVersionsRequest.KEY), 0)
    version = min(offered, refused - 1)
    return version if version >= 0 else None


def ranges_of(answer: Any) -> list[tuple[int, int, int]]:
    """Return the announced ranges as (key, first, last)."""
    return [(a.api_key, a.min_version, a.max_version) for a in answer.api_keys]


def features_of(answer: Any) -> dict[str, int]:
    """Return the levels of the cluster's features."""
    return {feature.name: feature.max_version_level for feature in answer.finalized_features}
