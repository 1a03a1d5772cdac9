"""The cluster and its configs as methods of `Admin`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ottla.client.admin.cluster import ClusterDescription
from ottla.client.interface.arguments import checked_flag

if TYPE_CHECKING:
    from ottla.client.admin.admin_api_driver import AdminApiDriver
    from ottla.client.admin.admin_calls import AdminCalls
    from ottla.client.admin.config_resource import ConfigEntry, ConfigResource
    from ottla.client.admin.feature import FeatureMetadata, FeatureUpdate
    from ottla.client.admin.quorum import QuorumInfo, RaftVoterEndpoint


class ClusterAdmin:
    """The methods of `Admin` for brokers, controllers, features and configs."""

    _driver: AdminApiDriver
    _calls: AdminCalls

    def describe_cluster(
        self,
        timeout: float | None = None,
        *,
        include_authorized_operations: bool = False,
        include_fenced_brokers: bool = False,
    ) -> ClusterDescription:
        """Return the running brokers as one of them reports them, the controller and the cluster id.

        `include_authorized_operations` requests the operations that the client's user may perform on the cluster
        (KIP-430), `include_fenced_brokers` the registered brokers that are fenced (KIP-1073; raises
        UnsupportedVersionError before Kafka 4.0).
        """
        checked_flag("include_fenced_brokers", include_fenced_brokers)
        checked_flag("include_authorized_operations", include_authorized_operations)
        operations = self._calls.authorized.cluster_operations(timeout) if include_authorized_operations else None
        cluster = self._driver.refresh_cluster(timeout)
        controller = cluster.nodes.get(cluster.controller_id)
        fenced = self._calls.quorum.find_fenced_brokers(timeout) if include_fenced_brokers else ()
        return ClusterDescription(tuple(cluster.nodes.values()), controller, cluster.cluster_id, operations, fenced)

    def describe_metadata_quorum(self, timeout: float | None = None) -> QuorumInfo:
        """Return the voters and the leader of the metadata quorum, and the log end offset of each replica (KIP-595)."""
        return self._calls.quorum.describe_metadata_quorum(timeout)

    def add_raft_voter(
        self,
        voter_id: int,
        voter_directory_id: str,
        endpoints: Iterable[RaftVoterEndpoint],
        timeout: float | None = None,
    ) -> None:
        """Make a controller that replicates the metadata a voter (KIP-853).

        Its directory id is in its `meta.properties`.
        """
        self._calls.quorum.add_raft_voter(voter_id, voter_directory_id, endpoints, timeout)

    def remove_raft_voter(self, voter_id: int, voter_directory_id: str, timeout: float | None = None) -> None:
        """Remove a voter from the quorum, running or not (KIP-853)."""
        self._calls.quorum.remove_raft_voter(voter_id, voter_directory_id, timeout)

    def unregister_broker(self, broker_id: int, timeout: float | None = None) -> None:
        """Remove a broker that will not return. Its partitions lose that replica."""
        self._calls.quorum.unregister_broker(broker_id, timeout)

    def unregister_controller(self, controller_id: int, timeout: float | None = None) -> None:
        """Remove the registration of a controller that is no voter and was stopped (KIP-1312).

        Its registration would otherwise count when feature levels are raised. A controller that still runs registers
        again. Raises UnsupportedVersionError before Kafka 4.4, and below metadata.version 33.
        """
        self._calls.quorum.unregister_controller(controller_id, timeout)

    def describe_features(self, timeout: float | None = None) -> FeatureMetadata:
        """Return the feature levels of the cluster, and those that the responding broker supports (KIP-584)."""
        return self._calls.features.describe_features(timeout)

    def update_features(
        self,
        updates: Mapping[str, int | FeatureUpdate],
        timeout: float | None = None,
        *,
        validate_only: bool = False,
    ) -> None:
        """Set feature levels, all of them or none; with `validate_only` only check whether that would succeed."""
        self._calls.features.update_features(updates, timeout, validate_only=validate_only)

    def describe_configs(
        self, resources: Iterable[ConfigResource], timeout: float | None = None
    ) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        """Return the configs of topics, brokers and groups by name, with the source of each value."""
        return self._calls.configs.describe_configs(resources, timeout)

    def alter_configs(
        self,
        changes: Mapping[ConfigResource, Mapping[str, Any]],
        timeout: float | None = None,
        *,
        validate_only: bool = False,
    ) -> None:
        """Set single configs and keep the others. None resets a config to its default."""
        self._calls.configs.alter_configs(changes, timeout, validate_only=validate_only)

    def list_config_resources(self, kinds: Iterable[str] = (), timeout: float | None = None) -> list[ConfigResource]:
        """Return the resources with configs, of some kinds or of all; only groups with configs of their own are included."""
        return self._calls.configs.list_config_resources(kinds, timeout)
