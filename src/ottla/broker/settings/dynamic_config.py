"""The present settings of a broker: those of its start, and the dynamic changes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Any

from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.listener_settings import PREFIX, list_options
from ottla.broker.settings.topic_configs import TOPIC_CONFIGS
from ottla.config import Option, convert, options_of
from ottla.protocol.messages.incremental_alter_configs import DELETE, SET
from ottla.settings_class import changed

ALL_BROKERS = ""
"""The name under which settings are changed for every broker of the cluster."""

DYNAMIC = {
    *TOPIC_CONFIGS.values(),
    "cordoned_log_dirs",
    "errors_deadletterqueue_auto_create_topics_enable",
    "errors_deadletterqueue_topic_name_prefix",
    "follower_replication_throttled_rate",
    "group_streams_assignment_interval_ms",
    "leader_replication_throttled_rate",
    "log_cleaner_backoff_ms",
    "log_cleaner_dedupe_buffer_size",
    "max_connections",
    "max_connections_per_ip",
    "producer_id_expiration_ms",
    "replica_alter_log_dirs_io_max_bytes_per_second",
    "sasl_kerberos_min_time_before_relogin",
    "transaction_partition_verification_enable",
}
"""The settings that can change at run time.

They are defaults of topics, settings that are read at each use, and those that Kafka's tools set while they move
partitions.
"""


OF_LISTENERS = ("ssl.keystore.", "ssl.truststore.", "ssl.key.")
"""The prefixes of listener settings that can change at run time."""


@cache
def broker_table() -> Mapping[str, Option]:
    """Return the broker's settings by field name."""
    return {option.field: option for option in options_of(BrokerConfig)}


@cache
def dynamic_options() -> Mapping[str, Option]:
    """Return the settings that can change at run time by dotted name, which are those that Kafka can change."""
    return {option.name: option for field, option in broker_table().items() if field in DYNAMIC}


def select_dynamic(names: Collection[str]) -> dict[str, Option]:
    """Return the settings that can be changed for any broker: those among these names, and all that are not of a listener.

    Only a broker itself knows its listeners.
    """
    suffixes = {name: name.removeprefix(PREFIX).partition(".")[2] for name in names if name.startswith(PREFIX)}
    known = {name: list_options().get(suffix) for name, suffix in suffixes.items() if suffix.startswith(OF_LISTENERS)}
    of_listeners = {name: each._replace(name=name) for name, each in known.items() if each is not None}
    return {**list_without_effect(names), **dynamic_options(), **of_listeners}


def list_without_effect(names: Iterable[str]) -> dict[str, Option]:
    """Return the settings among these names that a broker stores and lists when they are changed, without effect."""
    from ottla.broker.settings.unsupported_configs import (
        list_kept_options,  # a long table, loaded only when configs change
    )

    known = (option.name for option in broker_table().values())
    return list_kept_options(names, known)


class DynamicSettings:
    """The settings of a broker: those of its start, and the changes in the cluster's metadata."""

    def __init__(self, given: BrokerConfig, changed: Mapping[str, Mapping[str, str]]) -> None:
        """Combine the settings. `changed` has values by dotted name, for this broker's number and for all brokers."""
        self.given = given
        self.own = changed.get(str(given.node_id), {})
        self.for_all = changed.get(ALL_BROKERS, {})

    def with_changes(self, broker: str, changes: Iterable[Any], *, replaces: bool) -> DynamicSettings:
        """Return the settings after changes of a broker, or of all brokers with an empty name.

        The operations on lists do nothing here: none of these settings is a list.
        """
        is_for_all = broker == ALL_BROKERS
        configs = {} if replaces else dict(self.for_all if is_for_all else self.own)
        for change in changes:
            operation = getattr(change, "config_operation", SET)
            if operation == SET:
                configs[change.name] = change.value or ""
            elif operation == DELETE:
                configs.pop(change.name, None)
        own = {str(self.given.node_id): self.own} if is_for_all else {ALL_BROKERS: self.for_all}
        return DynamicSettings(self.given, {**own, broker: configs})

    def dynamic(self) -> dict[str, Option]:
        """Return the settings that can change at run time, by dotted names."""
        return {**dynamic_options(), **{option.name: option for option in self._changeable_of_listeners()}}

    def list_listener_options(self) -> list[Option]:
        """Return the settings that are set for single listeners."""
        return [
            option
            for option in self._changeable_of_listeners()
            if option.name in self.own or option.name in self.for_all or option.name in self.given.for_listeners
        ]

    def _changeable_of_listeners(self) -> list[Option]:
        return [
            option._replace(name=f"{PREFIX}{each.name.lower()}.{name}")
            for each in self.given.endpoints()
            for name, option in list_options().items()
            if name.startswith(OF_LISTENERS)
        ]

    def in_force(self) -> BrokerConfig:
        """Return the effective configuration. A value that is no longer valid is ignored."""
        known = self.dynamic()
        values = {
            name: convert(name, text, known[name].type)
            for name, text in {**self.for_all, **self.own}.items()
            if name in known
        }
        for_listeners = {name: value for name, value in values.items() if name.startswith(PREFIX)}
        fields = {known[name].field: value for name, value in values.items() if name not in for_listeners}
        return changed(self.given, **fields, for_listeners={**self.given.for_listeners, **for_listeners})
