"""The settings of a node that is not a cluster of its own, under Kafka's names: which part it has, and with how much patience. Values only."""

from __future__ import annotations

from typing import Annotated, Literal

from ottla.config import Between
from ottla.model import INT16_MAX, INT32_MAX
from ottla.settings_class import settings


@settings
class ClusterConfig:
    """The settings of controllers, and of brokers with controllers."""

    process_roles: tuple[Literal["broker", "controller"], ...] = ()
    """The roles of this node. `broker` alone, with `controller.quorum.bootstrap.servers`, is a broker of the cluster
    with these controllers; `controller` alone is a voter of the quorum; both, with
    `controller.quorum.bootstrap.servers` or `controller.quorum.voters` that name other nodes as well, is a broker
    and a voter in one process. Everything else is a cluster of one node, which is its own controller.
    """

    controller_quorum_bootstrap_servers: str = ""
    """Controllers of the cluster to join, `host:port` with commas between; one that answers is enough."""

    controller_quorum_voters: str = ""
    """The voters, unless the directories of the controllers name them: `ID@host:port` with commas between, the same on
    all nodes.
    """

    controller_quorum_election_timeout_ms: Annotated[int, Between(1, INT32_MAX)] = 1000
    """The time that a controller waits for a leader, or for votes, before the next attempt; a random time of at most
    the same length is added.
    """

    controller_quorum_fetch_timeout_ms: Annotated[int, Between(1, INT32_MAX)] = 2000
    """Time without a response of the leader after which a controller asks the others for their votes."""

    controller_quorum_election_backoff_max_ms: Annotated[int, Between(0, INT32_MAX)] = 1000
    """The longest delay of the election of a controller that a resigning leader named last."""

    controller_quorum_request_timeout_ms: Annotated[int, Between(1, INT32_MAX)] = 2000
    """Time that a controller waits for a response before it retries."""

    controller_quorum_retry_backoff_ms: Annotated[int, Between(1, INT32_MAX)] = 20
    """The pause before a controller sends another request to a controller that did not respond."""

    controller_quorum_auto_join_enable: bool = False
    """Let a controller without a vote request one by itself once it has copied the log, after its vote with another
    directory was removed: a controller with an empty disk rejoins in this way.
    """

    cordoned_log_dirs: str = ""
    """Directories in which the cluster places no new partitions (KIP-1066): `*` for all; empty for none. Where all are
    cordoned, controllers of Kafka 4.4 and of this version also reject assignments to this broker.
    """

    offsets_topic_replication_factor: Annotated[int, Between(1, INT16_MAX)] = 3
    """Replicas of `__consumer_offsets` when a cluster creates it. By default fewer if the cluster has fewer brokers."""

    transaction_state_log_replication_factor: Annotated[int, Between(1, INT16_MAX)] = 3
    """Replicas of `__transaction_state` when a cluster creates it. By default fewer if the cluster has fewer brokers."""

    transaction_state_log_min_isr: Annotated[int, Between(1, INT32_MAX)] = 2
    """`min.insync.replicas` of `__transaction_state`. The default applies only if there are more replicas."""

    share_coordinator_state_topic_replication_factor: Annotated[int, Between(1, INT16_MAX)] = 3
    """Replicas of `__share_group_state` when a cluster creates it. By default fewer if the cluster has fewer brokers."""

    share_coordinator_state_topic_min_isr: Annotated[int, Between(1, INT16_MAX)] = 2
    """`min.insync.replicas` of `__share_group_state`. The default applies only if there are more replicas."""

    broker_rack: str | None = None
    """The location of this broker, which it registers with the cluster."""

    replica_selector_class: str | None = None
    """The choice of the replica that consumers read from: `org.apache.kafka.common.replica.RackAwareReplicaSelector`
    sends those with a `client.rack` to a replica in the same `broker.rack`; empty for the leader.
    """

    broker_heartbeat_interval_ms: Annotated[int, Between(1, INT32_MAX)] = 2000
    """The interval of a broker's heartbeats to the controllers."""

    broker_session_timeout_ms: Annotated[int, Between(1, INT32_MAX)] = 9000
    """The time without a heartbeat after which the controllers fence a broker and elect other leaders for its
    partitions.
    """

    auto_leader_rebalance_enable: bool = True
    """Elect the preferred replicas of partitions as leaders periodically."""

    leader_imbalance_check_interval_seconds: Annotated[int, Between(1)] = 300
    """The interval of these checks."""

    metadata_max_idle_interval_ms: Annotated[int, Between(0, INT32_MAX)] = 500
    """The interval at which the active controller writes a record without content if there is no other; 0 for never."""

    initial_broker_registration_timeout_ms: Annotated[int, Between(1, INT32_MAX)] = 60_000
    """The time that a starting broker tries to register before it stops."""
