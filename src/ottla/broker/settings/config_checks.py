"""Settings of a broker that are right one by one, and do not go together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.settings.endpoints import ANY_HOST
from ottla.broker.settings.roles import controllers
from ottla.coordination.access.acl import is_principal
from ottla.errors import ConfigError

if TYPE_CHECKING:
    from ottla.broker.settings.config import BrokerConfig

AUTHORIZERS = ("standard", "org.apache.kafka.metadata.authorizer.StandardAuthorizer")
"""What the one authorizer that there is can be called."""

FROM_LEADERS = "org.apache.kafka.common.replica.LeaderSelector"
BY_RACK = "org.apache.kafka.common.replica.RackAwareReplicaSelector"

CONSUMER_SPANS = ("session_timeout_ms", "heartbeat_interval_ms")
"""Settings `group_consumer_…` that have a least and a most, and that single groups may have for themselves."""


def check_access(config: BrokerConfig) -> None:
    """ConfigError where the settings of access control do not go together, and guard nothing."""
    if config.authorizer_class_name not in ("", *AUTHORIZERS):
        raise ConfigError(
            f"authorizer.class.name = {config.authorizer_class_name!r}: there is one authorizer here, with the meaning of "
            f"Kafka's: write {' or '.join(AUTHORIZERS)}, or leave the setting out if everybody may do everything"
        )
    for name in config.super_principals:
        if not is_principal(name):
            raise ConfigError(
                f"super.users = {config.super_users!r}: {name!r} must be a type and a name, as User:{name}"
            )
    if config.audit_log and not config.authorizer_class_name:
        raise ConfigError(
            f"audit.log = {config.audit_log!r}: it is about what an authorizer says; "
            "set authorizer.class.name = standard as well"
        )


def check_alone(config: BrokerConfig) -> None:
    """ConfigError where more is wanted than one broker has: one copy; where directories are no list; or where a span is none."""
    named = config.directories
    if len(set(named)) < len(named) or (config.log_dirs and len(named) < config.log_dirs.count(",") + 1):
        raise ConfigError(
            f"log.dirs = {config.log_dirs!r}: name each directory once, with a comma between two, and without one in a name"
        )
    if config.metadata_log_dir and not named:
        raise ConfigError(
            f"metadata.log.dir = {config.metadata_log_dir!r}: log.dirs is empty; name where partitions are kept as well"
        )
    if config.default_replication_factor != 1 and not (config.controls or config.joins):
        raise ConfigError(
            f"default.replication.factor = {config.default_replication_factor}: one broker can keep one copy, set 1"
        )
    if config.group_min_session_timeout_ms > config.group_max_session_timeout_ms:
        raise ConfigError(
            f"group.min.session.timeout.ms = {config.group_min_session_timeout_ms}: must not be above "
            f"group.max.session.timeout.ms, which is {config.group_max_session_timeout_ms}"
        )


def check_joining(config: BrokerConfig) -> None:
    """ConfigError where a broker is to join a cluster, and could not."""
    if not config.joins:
        return
    controllers(config)
    if not config.log_dirs:
        raise ConfigError("log.dirs is empty: a broker of a cluster keeps its directory; name one that was formatted")
    told = config.advertised_endpoints()
    for each in config.endpoints():
        if each.host in ANY_HOST and each.name not in told:
            raise ConfigError(
                f"listeners = {config.listeners!r}: {each.name} listens everywhere, and others must know where to find it; "
                f"set advertised.listeners = {each.name}://HOST:PORT"
            )
    from ottla.broker.settings.peer_security import (  # only where there is a cluster
        towards_brokers,
        towards_controllers,
    )

    towards_controllers(config)
    towards_brokers(config)


def check_selector(config: BrokerConfig) -> None:
    """ConfigError where consumers are to be sent to copies in a way that there is not."""
    if config.replica_selector_class not in (None, "", FROM_LEADERS, BY_RACK):
        raise ConfigError(
            f"replica.selector.class = {config.replica_selector_class!r}: there is no such selector here; write {BY_RACK}, or "
            "leave the setting out if consumers are to read from leaders"
        )


def check_consumer_groups(config: BrokerConfig) -> None:
    """ConfigError where the settings of consumer groups do not go together."""
    for name in CONSUMER_SPANS:
        value = getattr(config, f"group_consumer_{name}")
        least, most = (getattr(config, f"group_consumer_{end}_{name}") for end in ("min", "max"))
        if not least <= value <= most:
            dotted = name.replace("_", ".")
            raise ConfigError(
                f"group.consumer.{dotted} = {value}: must be between group.consumer.min.{dotted}, which is {least}, and "
                f"group.consumer.max.{dotted}, which is {most}"
            )
    if config.group_consumer_heartbeat_interval_ms >= config.group_consumer_session_timeout_ms:
        raise ConfigError(
            f"group.consumer.heartbeat.interval.ms = {config.group_consumer_heartbeat_interval_ms}: must be below "
            f"group.consumer.session.timeout.ms, which is {config.group_consumer_session_timeout_ms}"
        )
    if config.group_consumer_assignors != type(config).group_consumer_assignors:
        check_assignors(config)


def check_assignors(config: BrokerConfig) -> None:
    from ottla.coordination.groups.consumer.assignors import ASSIGNORS  # for who names some

    unknown = set(config.consumer_assignors) - ASSIGNORS.keys()
    if unknown or not config.consumer_assignors:
        raise ConfigError(
            f"group.consumer.assignors = {config.group_consumer_assignors!r}: "
            f"must name some of {', '.join(ASSIGNORS)}, with commas between"
        )
