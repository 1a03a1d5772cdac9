"""The settings of a broker as they are now: what it was started with, and what was changed at run time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from ottla.broker.settings.config import TOPIC_CONFIGS, BrokerConfig
from ottla.config import Option, convert, options_of

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
    "transaction_partition_verification_enable",
}
"""The defaults of topics, what else is looked at each time that it matters, and what Kafka's tools set while they move
partitions."""


@cache
def broker_table() -> Mapping[str, Option]:
    """The broker's settings by their fields."""
    return {option.field: option for option in options_of(BrokerConfig)}


@cache
def dynamic_options() -> Mapping[str, Option]:
    """The settings that may be changed at run time, by their dotted names: those that Kafka can change, too."""
    return {option.name: option for field, option in broker_table().items() if field in DYNAMIC}


class Settings:
    """What a broker was given, and what the cluster's metadata says since."""

    def __init__(self, given: BrokerConfig, changed: Mapping[str, Mapping[str, str]]) -> None:
        """`changed` has values by dotted name, for this broker's number and for all brokers."""
        self.given = given
        self.own = changed.get(str(given.node_id), {})
        self.for_all = changed.get(ALL_BROKERS, {})

    def in_force(self) -> BrokerConfig:
        """The configuration by which the broker acts; a value that is no longer known is passed over."""
        known = dynamic_options()
        values = {name: value for name, value in {**self.for_all, **self.own}.items() if name in known}
        return replace(
            self.given, **{known[name].field: convert(name, text, known[name].type) for name, text in values.items()}
        )
