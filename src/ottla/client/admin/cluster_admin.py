"""The cluster and its configs, as an admin's methods."""

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
    """What `Admin` does with brokers, controllers, features and configs."""

    _driver: AdminApiDriver
    _calls: AdminCalls

    def describe_cluster(
        self,
        timeout: float | None = None,
        *,
        include_authorized_operations: bool = False,
        include_fenced_brokers: bool = False,
    ) -> ClusterDescription:
        """The brokers that are there now, by what one of them says, the controller and the cluster's id.

        What this client's user may do with the cluster is asked for with `include_authorized_operations` (KIP-430),
        registered brokers that are fenced with `include_fenced_brokers` (KIP-1073; UnsupportedVersionError before Kafka 4.0).
        """
        checked_flag("include_fenced_brokers", include_fenced_brokers)
        checked_flag("include_authorized_operations", include_authorized_operations)
        operations = self._calls.authorized.of_cluster(timeout) if include_authorized_operations else None
        cluster = self._driver.cluster_now(timeout)
        controller = cluster.nodes.get(cluster.controller_id)
        fenced = self._calls.quorum.fenced_brokers(timeout) if include_fenced_brokers else ()
        return ClusterDescription(tuple(cluster.nodes.values()), controller, cluster.cluster_id, operations, fenced)

    def describe_metadata_quorum(self, timeout: float | None = None) -> QuorumInfo:
        """Who votes on the cluster's metadata, who leads, and how far each has come (KIP-595)."""
        return self._calls.quorum.describe_metadata_quorum(timeout)

    def add_raft_voter(
        self,
        voter_id: int,
        voter_directory_id: str,
        endpoints: Iterable[RaftVoterEndpoint],
        timeout: float | None = None,
    ) -> None:
        """Let a controller that copies the metadata vote on it from now on (KIP-853). Its id is in its `meta.properties`."""
        self._calls.quorum.add_raft_voter(voter_id, voter_directory_id, endpoints, timeout)

    def remove_raft_voter(self, voter_id: int, voter_directory_id: str, timeout: float | None = None) -> None:
        """Let a controller vote no longer, be it dead or alive (KIP-853)."""
        self._calls.quorum.remove_raft_voter(voter_id, voter_directory_id, timeout)

    def unregister_broker(self, broker_id: int, timeout: float | None = None) -> None:
        """Strike a broker that is gone for good off the list; its partitions lose that copy."""
        self._calls.quorum.unregister_broker(broker_id, timeout)

    def describe_features(self, timeout: float | None = None) -> FeatureMetadata:
        """The levels of features that the cluster runs, and those that the broker which is asked could run (KIP-584)."""
        return self._calls.features.describe_features(timeout)

    def update_features(
        self,
        updates: Mapping[str, int | FeatureUpdate],
        timeout: float | None = None,
        *,
        validate_only: bool = False,
    ) -> None:
        """Run features at other levels, all that are named or none; or only check whether that would succeed."""
        self._calls.features.update_features(updates, timeout, validate_only=validate_only)

    def describe_configs(
        self, resources: Iterable[ConfigResource], timeout: float | None = None
    ) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        """The configs of topics, brokers and groups by name, each with the place that its value comes from."""
        return self._calls.configs.describe_configs(resources, timeout)

    def alter_configs(
        self,
        changes: Mapping[ConfigResource, Mapping[str, Any]],
        timeout: float | None = None,
        *,
        validate_only: bool = False,
    ) -> None:
        """Set single configs and leave the others; None gives one back to its default."""
        self._calls.configs.alter_configs(changes, timeout, validate_only=validate_only)

    def list_config_resources(self, kinds: Iterable[str] = (), timeout: float | None = None) -> list[ConfigResource]:
        """What has configs, of some kinds or of all; of groups those that set some themselves."""
        return self._calls.configs.list_config_resources(kinds, timeout)
