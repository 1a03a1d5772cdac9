"""The settings of a node that is not a cluster of its own, under Kafka's names: which part it has, and with how much patience. Values only."""

from __future__ import annotations

from typing import Annotated, Literal

from ottla.config import Between
from ottla.model import INT16_MAX, INT32_MAX
from ottla.settings_class import settings


@settings
class ClusterConfig:
    """What controllers, and brokers that join them, can be told besides."""

    process_roles: tuple[Literal["broker", "controller"], ...] = ()
    """What Kafka would be here. `broker` alone, with `controller.quorum.bootstrap.servers`, joins the cluster of these
    controllers; `controller` alone votes in a quorum, and does nothing else; both, with `controller.quorum.bootstrap.servers` or
    `controller.quorum.voters` that name others as well, is a broker and a voter in one process; everything else is a cluster of its own,
    which is its own controller."""

    controller_quorum_bootstrap_servers: str = ""
    """Controllers of the cluster to join, `host:port` with commas between; one that answers is enough."""

    controller_quorum_voters: str = ""
    """Who votes where the directories of controllers do not say it: `ID@host:port` with commas between, the same for all."""

    controller_quorum_election_timeout_ms: Annotated[int, Between(1, INT32_MAX)] = 1000
    """How long a controller waits for a leader, or for votes, before the next attempt; up to as much again is added by chance."""

    controller_quorum_fetch_timeout_ms: Annotated[int, Between(1, INT32_MAX)] = 2000
    """How long a controller goes without an answer of the leader before it asks whether others would vote for it."""

    controller_quorum_election_backoff_max_ms: Annotated[int, Between(0, INT32_MAX)] = 1000
    """How long a controller that was named last by a leader that left waits before it asks for votes."""

    controller_quorum_request_timeout_ms: Annotated[int, Between(1, INT32_MAX)] = 2000
    """How long a controller waits for another's answer before it asks anew."""

    controller_quorum_retry_backoff_ms: Annotated[int, Between(1, INT32_MAX)] = 20
    """How long a controller leaves another alone that did not answer."""

    controller_quorum_auto_join_enable: bool = False
    """Whether a controller that has no vote asks for one by itself once it has copied the log, and first has its vote with another
    directory taken away: one with an empty disk comes back so."""

    cordoned_log_dirs: str = "*"
    """Directories in which the cluster puts no partition unless somebody assigns it there: `*` for all, which is the default of a
    broker that joins (`process.roles=broker`), empty for none."""

    offsets_topic_replication_factor: Annotated[int, Between(1, INT16_MAX)] = 3
    """Copies of `__consumer_offsets` when a cluster makes it. Unless somebody sets it, fewer where the cluster has fewer brokers."""

    transaction_state_log_replication_factor: Annotated[int, Between(1, INT16_MAX)] = 3
    """Copies of `__transaction_state` when a cluster makes it. Unless somebody sets it, fewer where the cluster has fewer brokers."""

    transaction_state_log_min_isr: Annotated[int, Between(1, INT32_MAX)] = 2
    """`min.insync.replicas` of `__transaction_state`. Unless somebody sets it, only where there are more copies than that."""

    broker_rack: str | None = None
    """Where this broker is, told to the cluster that it joins."""

    replica_selector_class: str | None = None
    """From which copies consumers read that say where they are: `org.apache.kafka.common.replica.RackAwareReplicaSelector` sends those
    with a `client.rack` to a copy in the same `broker.rack`; nothing for the leader."""

    broker_heartbeat_interval_ms: Annotated[int, Between(1, INT32_MAX)] = 2000
    """How often a broker tells the controllers that it is there."""

    broker_session_timeout_ms: Annotated[int, Between(1, INT32_MAX)] = 9000
    """How long a broker may be silent before the controllers fence it, and others lead what it led."""

    auto_leader_rebalance_enable: bool = True
    """Whether the controllers let the preferred replica of a partition lead again by themselves."""

    leader_imbalance_check_interval_seconds: Annotated[int, Between(1)] = 300
    """How often they look whether it could."""

    metadata_max_idle_interval_ms: Annotated[int, Between(0, INT32_MAX)] = 500
    """How often the active controller writes a record that says nothing where there is no other; 0 is never."""

    initial_broker_registration_timeout_ms: Annotated[int, Between(1, INT32_MAX)] = 60_000
    """How long a broker that starts tries to be registered, before it ends."""
