"""How a term as the active controller begins: with the node's settings, and in a new cluster with what it was formatted with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ottla.broker.controllers.active_controller import ActiveController, Guard, Pace
from ottla.broker.controllers.quorum_log import QuorumLog
from ottla.broker.machines.bootstrap_checkpoint import read_if_needed
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.timers import Timers
from ottla.clock import Clock
from ottla.coordination.controller.config import ControllerConfig
from ottla.protocol.schema import Message
from ottla.storage.directory.data_directory import DataDirectory


def terms(
    config: BrokerConfig, directory: DataDirectory, log: QuorumLog, clock: Clock, timers: Timers, guard: Guard
) -> Callable[[int], ActiveController]:
    """Return what makes the active controller of an epoch. ConfigError if the bootstrap checkpoint cannot be read."""
    rules = rules_of(config, directory.cluster_id, read_if_needed(directory.path, has_begun=log.shape().holds_metadata))
    return lambda epoch: ActiveController(log, epoch, rules, clock, timers, pace_of(config), guard)


def rules_of(config: BrokerConfig, cluster_id: str, bootstrap: Sequence[Message]) -> ControllerConfig:
    return ControllerConfig(
        cluster_id,
        config.node_id,
        config.broker_session_timeout_ms / 1000,
        config.num_partitions,
        config.default_replication_factor,
        config.changed_topic_defaults(),
        bootstrap=bootstrap,
    )


def pace_of(config: BrokerConfig) -> Pace:
    return Pace(
        config.metadata_max_idle_interval_ms / 1000 or None,
        float(config.leader_imbalance_check_interval_seconds) if config.auto_leader_rebalance_enable else None,
    )
