"""The start of a term as active controller: settings, periodic work, and the bootstrap records of a new cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ottla.broker.controller.active_controller import ActiveController, Guard, Pace
from ottla.broker.controller.quorum_log import QuorumLog
from ottla.broker.event_loop.timers import Timers
from ottla.broker.metadata.bootstrap_checkpoint import read_if_needed
from ottla.broker.settings.config import BrokerConfig
from ottla.clock import Clock
from ottla.coordination.cluster.features import build_first_records
from ottla.coordination.controller.config import ControllerConfig
from ottla.protocol.schema import Message
from ottla.storage.directory.data_directory import DataDirectory

NOTHING_REPEATED = Pace(None, None, None)


def make_activation(
    config: BrokerConfig, directory: DataDirectory, log: QuorumLog, clock: Clock, timers: Timers, guard: Guard
) -> Callable[[int], ActiveController]:
    """Return what makes the active controller of an epoch. ConfigError if the bootstrap checkpoint cannot be read."""
    rules = read_controller_config(
        config, directory.cluster_id, read_if_needed(directory.path, has_records=log.shape().holds_metadata)
    )
    pace, is_alone = read_intervals(config), config.is_alone
    return lambda epoch: ActiveController(log, epoch, rules, clock, timers, pace, guard, survives_failures=is_alone)


def read_controller_config(config: BrokerConfig, cluster_id: str, bootstrap: Sequence[Message]) -> ControllerConfig:
    return ControllerConfig(
        cluster_id,
        config.node_id,
        config.broker_session_timeout_ms / 1000,
        config.num_partitions,
        config.default_replication_factor,
        config.changed_topic_defaults(),
        own_broker=config.node_id if config.is_alone else None,
        bootstrap=build_first_records(bootstrap) if config.is_alone else bootstrap,
    )


def read_intervals(config: BrokerConfig) -> Pace:
    """Return the intervals of periodic work.

    A sole node has none: no observer waits for records, and no other node can lead.
    """
    if config.is_alone:
        return NOTHING_REPEATED
    return Pace(
        config.metadata_max_idle_interval_ms / 1000 or None,
        float(config.leader_imbalance_check_interval_seconds) if config.auto_leader_rebalance_enable else None,
    )
