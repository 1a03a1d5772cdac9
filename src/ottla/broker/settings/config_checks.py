"""Checks of broker settings that are valid one by one, and invalid together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.settings.endpoints import ANY_HOST
from ottla.broker.settings.roles import list_controllers
from ottla.coordination.access.acl import is_principal
from ottla.errors import ConfigError

if TYPE_CHECKING:
    from ottla.broker.settings.config import BrokerConfig

DESCRIPTION_STORES = ("memory", "org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin")
"""The names of the only store of topology descriptions."""
AUTHORIZERS = ("standard", "org.apache.kafka.metadata.authorizer.StandardAuthorizer")
"""The names of the only authorizer."""

FROM_LEADERS = "org.apache.kafka.common.replica.LeaderSelector"
BY_RACK = "org.apache.kafka.common.replica.RackAwareReplicaSelector"

CONSUMER_SPANS = ("session_timeout_ms", "heartbeat_interval_ms")
"""The settings `group_consumer_…` with a minimum and a maximum, which groups can override."""

SHARE_SPANS = (
    "delivery_count_limit",
    "heartbeat_interval_ms",
    "partition_max_record_locks",
    "record_lock_duration_ms",
    "session_timeout_ms",
)
"""The same for `group_share_…`."""

STREAMS_SPANS = ("assignment_interval_ms", "heartbeat_interval_ms", "session_timeout_ms")
"""The same for `group_streams_…`."""


def check_access(config: BrokerConfig) -> None:
    """Raise ConfigError if the settings of authorization contradict each other, or protect nothing."""
    if config.authorizer_class_name not in ("", *AUTHORIZERS):
        raise ConfigError(
            f"authorizer.class.name = {config.authorizer_class_name!r}: there is one authorizer here, with the meaning of "
            f"Kafka's: write {' or '.join(AUTHORIZERS)}, or leave the setting out to authorize every client for everything"
        )
    for name in config.super_principals:
        if not is_principal(name):
            raise ConfigError(
                f"super.users = {config.super_users!r}: {name!r} must be a type and a name, as User:{name}"
            )
    if config.audit_log and not config.authorizer_class_name:
        raise ConfigError(
            f"audit.log = {config.audit_log!r}: it requires an authorizer: set authorizer.class.name = standard"
        )


def check_descriptions(config: BrokerConfig) -> None:
    """Raise ConfigError if descriptions of topologies are to be stored elsewhere than in memory."""
    if config.group_streams_topology_description_plugin_class not in ("", *DESCRIPTION_STORES):
        raise ConfigError(
            f"group.streams.topology.description.plugin.class = {config.group_streams_topology_description_plugin_class!r}: "
            f"descriptions are stored in memory only: write {' or '.join(DESCRIPTION_STORES)}, or leave the setting out"
        )


def check_alone(config: BrokerConfig) -> None:
    """Check a broker without controllers: one replica, a list of directories, and session timeouts in order.

    Raise ConfigError.
    """
    named = config.directories
    if len(set(named)) < len(named) or (config.log_dirs and len(named) < config.log_dirs.count(",") + 1):
        raise ConfigError(
            f"log.dirs = {config.log_dirs!r}: name each directory once, with a comma between two, and without one in a name"
        )
    if config.metadata_log_dir and not named:
        raise ConfigError(
            f"metadata.log.dir = {config.metadata_log_dir!r}: log.dirs is not set; name where partitions are kept as well"
        )
    if config.default_replication_factor != 1 and not (config.is_controller or config.joins_cluster):
        raise ConfigError(
            f"default.replication.factor = {config.default_replication_factor}: a single broker keeps one replica, set 1"
        )
    if config.group_min_session_timeout_ms > config.group_max_session_timeout_ms:
        raise ConfigError(
            f"group.min.session.timeout.ms = {config.group_min_session_timeout_ms}: must not be above "
            f"group.max.session.timeout.ms, which is {config.group_max_session_timeout_ms}"
        )


def check_joining(config: BrokerConfig) -> None:
    """Check a broker of a cluster. Raise ConfigError."""
    if not config.joins_cluster:
        return
    list_controllers(config)
    if not config.log_dirs:
        raise ConfigError("log.dirs is not set: a broker of a cluster needs a directory that was formatted")
    by_listener = config.advertised_endpoints()
    for each in config.endpoints():
        if each.host in ANY_HOST and each.name not in by_listener:
            raise ConfigError(
                f"listeners = {config.listeners!r}: {each.name} listens on all addresses, and other nodes need one to connect to: "
                f"set advertised.listeners = {each.name}://HOST:PORT"
            )
    from ottla.broker.settings.peer_security import (  # only where there is a cluster
        towards_brokers,
        towards_controllers,
    )

    towards_controllers(config)
    towards_brokers(config)


def check_selector(config: BrokerConfig) -> None:
    """Check the choice of replicas for consumers. Raise ConfigError if it is unknown."""
    if config.replica_selector_class not in (None, "", FROM_LEADERS, BY_RACK):
        raise ConfigError(
            f"replica.selector.class = {config.replica_selector_class!r}: unknown selector: use {BY_RACK}, or "
            "leave the setting out to read from leaders"
        )


def check_consumer_groups(config: BrokerConfig) -> None:
    """Raise ConfigError if the settings of consumer groups contradict each other."""
    kinds = {"consumer": CONSUMER_SPANS, "share": SHARE_SPANS, "streams": STREAMS_SPANS}
    spans = [(kind, name) for kind, names in kinds.items() for name in names]
    for kind, name in spans:
        value = getattr(config, f"group_{kind}_{name}")
        least, most = (getattr(config, f"group_{kind}_{end}_{name}") for end in ("min", "max"))
        if not least <= value <= most:
            dotted = name.replace("_", ".")
            raise ConfigError(
                f"group.{kind}.{dotted} = {value}: must be between group.{kind}.min.{dotted}, which is {least}, and "
                f"group.{kind}.max.{dotted}, which is {most}"
            )
    if config.group_share_heartbeat_interval_ms >= config.group_share_session_timeout_ms:
        raise ConfigError(
            f"group.share.heartbeat.interval.ms = {config.group_share_heartbeat_interval_ms}: must be below "
            f"group.share.session.timeout.ms, which is {config.group_share_session_timeout_ms}"
        )
    if config.group_streams_heartbeat_interval_ms >= config.group_streams_session_timeout_ms:
        raise ConfigError(
            f"group.streams.heartbeat.interval.ms = {config.group_streams_heartbeat_interval_ms}: must be below "
            f"group.streams.session.timeout.ms, which is {config.group_streams_session_timeout_ms}"
        )
    if config.group_streams_num_standby_replicas > config.group_streams_max_standby_replicas:
        raise ConfigError(
            f"group.streams.num.standby.replicas = {config.group_streams_num_standby_replicas}: must not be above "
            f"group.streams.max.standby.replicas, which is {config.group_streams_max_standby_replicas}"
        )
    if config.group_consumer_heartbeat_interval_ms >= config.group_consumer_session_timeout_ms:
        raise ConfigError(
            f"group.consumer.heartbeat.interval.ms = {config.group_consumer_heartbeat_interval_ms}: must be below "
            f"group.consumer.session.timeout.ms, which is {config.group_consumer_session_timeout_ms}"
        )
    if config.group_consumer_assignors != type(config).group_consumer_assignors:
        check_assignors(config)


def check_assignors(config: BrokerConfig) -> None:
    from ottla.coordination.groups.consumer.assignors import ASSIGNORS  # loaded only if assignors are set

    unknown = set(config.consumer_assignors) - ASSIGNORS.keys()
    if unknown or not config.consumer_assignors:
        raise ConfigError(
            f"group.consumer.assignors = {config.group_consumer_assignors!r}: "
            f"must name some of {', '.join(ASSIGNORS)}, with commas between"
        )
