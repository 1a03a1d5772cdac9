"""The settings of a broker as they are now: what it was started with, and what was changed at run time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Any

from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.listener_settings import PREFIX, table
from ottla.broker.settings.topic_configs import TOPIC_CONFIGS
from ottla.config import Option, convert, options_of
from ottla.protocol.messages.incremental_alter_configs import DELETE, SET
from ottla.settings_class import changed

ALL_BROKERS = ""
"""The name under which settings are changed for every broker of the cluster."""

DYNAMIC = {
    *TOPIC_CONFIGS.values(),
    "follower_replication_throttled_rate",
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
"""The defaults of topics, what else is looked at each time that it matters, and what Kafka's tools set while they move
partitions."""


OF_LISTENERS = ("ssl.keystore.", "ssl.truststore.", "ssl.key.")
"""How the settings of a listener begin that may be changed."""


@cache
def broker_table() -> Mapping[str, Option]:
    """The broker's settings by their fields."""
    return {option.field: option for option in options_of(BrokerConfig)}


@cache
def dynamic_options() -> Mapping[str, Option]:
    """The settings that may be changed at run time, by their dotted names: those that Kafka can change, too."""
    return {option.name: option for field, option in broker_table().items() if field in DYNAMIC}


def dynamic_of(names: Collection[str]) -> dict[str, Option]:
    """Which of these settings, and of all that are no listener's, any broker may be changed in: its listeners are its own to know."""
    suffixes = {name: name.removeprefix(PREFIX).partition(".")[2] for name in names if name.startswith(PREFIX)}
    known = {name: table().get(suffix) for name, suffix in suffixes.items() if suffix.startswith(OF_LISTENERS)}
    of_listeners = {name: each._replace(name=name) for name, each in known.items() if each is not None}
    return {**kept_without_effect(names), **dynamic_options(), **of_listeners}


def kept_without_effect(names: Iterable[str]) -> dict[str, Option]:
    """Those of these names that a broker keeps and shows when they are changed, and does not act by."""
    from ottla.broker.settings.foreign_configs import kept_options  # a long table, for those who change configs

    known = (option.name for option in broker_table().values())
    return kept_options(names, known)


class Settings:
    """What a broker was given, and what the cluster's metadata says since."""

    def __init__(self, given: BrokerConfig, changed: Mapping[str, Mapping[str, str]]) -> None:
        """`changed` has values by dotted name, for this broker's number and for all brokers."""
        self.given = given
        self.own = changed.get(str(given.node_id), {})
        self.for_all = changed.get(ALL_BROKERS, {})

    def wished(self, broker: str, changes: Iterable[Any], *, replaces: bool) -> Settings:
        """The same where a broker, or all by an empty name, is changed as a request says.

        The operations that are for lists do nothing here: none of these settings is one.
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
        return Settings(self.given, {**own, broker: configs})

    def dynamic(self) -> dict[str, Option]:
        """What may be changed at run time, by dotted names."""
        return {**dynamic_options(), **{option.name: option for option in self._changeable_of_listeners()}}

    def changeable(self, names: Iterable[str]) -> dict[str, Option]:
        """The same, and those of these names that are kept without effect."""
        return {**kept_without_effect(names), **self.dynamic()}

    def of_listeners(self) -> list[Option]:
        """Those of them that are set for single listeners."""
        return [
            option
            for option in self._changeable_of_listeners()
            if option.name in self.own or option.name in self.for_all or option.name in self.given.for_listeners
        ]

    def _changeable_of_listeners(self) -> list[Option]:
        return [
            option._replace(name=f"{PREFIX}{each.name.lower()}.{name}")
            for each in self.given.endpoints()
            for name, option in table().items()
            if name.startswith(OF_LISTENERS)
        ]

    def in_force(self) -> BrokerConfig:
        """The configuration by which the broker acts; a value that is no longer known is passed over."""
        known = self.dynamic()
        values = {
            name: convert(name, text, known[name].type)
            for name, text in {**self.for_all, **self.own}.items()
            if name in known
        }
        for_listeners = {name: value for name, value in values.items() if name.startswith(PREFIX)}
        fields = {known[name].field: value for name, value in values.items() if name not in for_listeners}
        return changed(self.given, **fields, for_listeners={**self.given.for_listeners, **for_listeners})
