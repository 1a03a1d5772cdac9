"""The entries of DescribeConfigs for topics, groups and brokers: value, source, synonyms, type and documentation."""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence, Set
from enum import IntEnum
from types import UnionType
from typing import Annotated, Any, Literal, Union

from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.dynamic_config import DynamicSettings, broker_table, dynamic_options
from ottla.broker.settings.kafka_settings import ALIASES
from ottla.broker.settings.topic_configs import TOPIC_CONFIGS
from ottla.broker.settings.unsupported_configs import OF_BROKERS, OF_GROUPS, ForeignConfig
from ottla.config import Between, Option, Password
from ottla.coordination.cluster import client_metrics, group_configs, topic_configs
from ottla.coordination.cluster.topic_configs import ConfigSource, format_value
from ottla.model import INT16_MAX, INT32_MAX
from ottla.protocol.messages.describe_configs import DescribeConfigsResourceResult, DescribeConfigsSynonym
from ottla.protocol.schema import replace


class ConfigType(IntEnum):
    """The type of a config's value, by its number in the protocol."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


KINDS = {
    "advertised.listeners": ConfigType.LIST,
    "controller.quorum.voters": ConfigType.LIST,
    "cordoned.log.dirs": ConfigType.LIST,
    "group.consumer.assignors": ConfigType.LIST,
    "group.streams.rack.aware.assignment.tags": ConfigType.LIST,
    "group.streams.topology.description.plugin.class": ConfigType.CLASS,
    "streams.rack.aware.assignment.tags": ConfigType.LIST,
    "listeners": ConfigType.LIST,
    "ssl.principal.mapping.rules": ConfigType.STRING,
    "log.dirs": ConfigType.LIST,
    "max.connections.per.ip.overrides": ConfigType.STRING,
}
"""Settings with another type in Kafka."""
THROTTLES = frozenset(
    (
        "follower.replication.throttled.rate",
        "leader.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    )
)
WITHOUT_DEFAULT = THROTTLES | {
    "group.streams.topology.description.plugin.class",
    *("log.flush.interval.ms", "log.retention.ms", "log.roll.ms"),
}
"""Settings without a default in Kafka; the last three have fallbacks in larger units."""
MIN_ISR = "min.insync.replicas"
ONLY_WHEN_SET = THROTTLES | {"producer.id.expiration.check.interval.ms"}
"""Settings that Kafka does not list unless they are set."""
BROKERS_NAMES = {
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "local.retention.bytes": "log.local.retention.bytes",
    "local.retention.ms": "log.local.retention.ms",
    "preallocate": "log.preallocate",
    "remote.copy.lag.bytes": "log.remote.copy.lag.bytes",
    "remote.copy.lag.ms": "log.remote.copy.lag.ms",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
}
"""The names of topic configs among the settings of Kafka's brokers, where this broker has no such setting."""
PLAIN = {
    Password: ConfigType.PASSWORD,
    bool: ConfigType.BOOLEAN,
    str: ConfigType.STRING,
    int: ConfigType.LONG,
    float: ConfigType.DOUBLE,
}


def topic_entries(configs: Mapping[str, str], broker: DynamicSettings) -> list[DescribeConfigsResourceResult]:
    """Return the configs of a topic with the overrides `configs`; they can be changed.

    Those of schema validation, which Kafka does not have, are returned if they are set, or if the broker has a registry.
    """
    hidden = set() if broker.given.schema_registry_url else set(topic_configs.SCHEMA_VALIDATION.values()) - set(configs)
    return [
        build_entry(option, topic_synonyms(name, configs, broker), read_only=False, value=topic_default(name, broker))
        for name, option in sorted(topic_configs.list_options().items())
        if name not in hidden
    ]


def topic_default(name: str, broker: DynamicSettings) -> str:
    """Return the value of a config that neither its topic nor the broker's setting of that name sets; `log.retention.hours` may set it."""
    setting = TOPIC_CONFIGS.get(name)
    return topic_configs.list_defaults()[name] if setting is None else format_value(getattr(broker.given, setting))


def topic_synonyms(name: str, configs: Mapping[str, str], broker: DynamicSettings) -> list[DescribeConfigsSynonym]:
    """Return the sources of a topic config's value, the effective one first."""
    own = [DescribeConfigsSynonym(name, configs[name], ConfigSource.TOPIC)] if name in configs else []
    setting = TOPIC_CONFIGS.get(name)
    if setting is None:
        brokers_name = BROKERS_NAMES.get(name)
        value = topic_configs.list_defaults()[name]
        return [*own, DescribeConfigsSynonym(brokers_name, value, ConfigSource.DEFAULT)] if brokers_name else own
    return [*own, *broker_synonyms(broker_table()[setting], broker)]


def group_entries(configs: Mapping[str, str], broker: DynamicSettings) -> list[DescribeConfigsResourceResult]:
    """Return the configs of a group with the overrides `configs`; the group need not exist."""
    own = [
        build_entry(option, group_synonyms(option, configs, broker), read_only=False)
        for option in group_configs.list_options().values()
    ]
    listed = {each.name for each in own}
    others = [build_group_entry(name, each) for name, each in OF_GROUPS.items() if name not in listed]
    return sorted(own + others, key=lambda each: each.name)


def build_group_entry(name: str, config: ForeignConfig) -> DescribeConfigsResourceResult:
    """Return a config of other kinds of groups, or one without effect here; it cannot be changed."""
    synonym = DescribeConfigsSynonym(f"group.{name}", config.default, ConfigSource.DEFAULT)
    return replace(foreign_entry(name, config, []), synonyms=[synonym], read_only=True)


def subscription_entries(configs: Mapping[str, str]) -> list[DescribeConfigsResourceResult]:
    """Return the configs of a client metrics subscription."""
    return [
        build_entry(
            option,
            [DescribeConfigsSynonym(name, configs[name], ConfigSource.SUBSCRIPTION)] if name in configs else [],
            read_only=False,
            value=client_metrics.list_defaults()[name],
        )
        for name, option in sorted(client_metrics.list_options().items())
    ]


def group_synonyms(option: Option, configs: Mapping[str, str], broker: DynamicSettings) -> list[DescribeConfigsSynonym]:
    """Return the sources of a group config's value, the effective one first."""
    name = option.name
    own = [DescribeConfigsSynonym(name, configs[name], ConfigSource.GROUP)] if name in configs else []
    setting = broker_table().get(f"group_{name}".replace(".", "_"))
    if setting is None:
        return [*own, DescribeConfigsSynonym(name, format_value(option.default), ConfigSource.DEFAULT)]
    return [*own, *broker_synonyms(setting, broker)]


def broker_entries(broker: DynamicSettings, reached_at: str = "") -> list[DescribeConfigsResourceResult]:
    """Return the settings of the broker; most of them cannot change at run time.

    `reached_at` is the address for clients if `advertised.listeners` is not set.
    """
    found = []
    for option in sorted(broker_table().values(), key=lambda option: option.name):
        synonyms = broker_synonyms(option, broker)
        value = None if option.name in WITHOUT_DEFAULT else format_or_none(option.default)
        if option.name == "advertised.listeners" and not broker.given.advertised_listeners:
            synonyms, value = [], reached_at
        if option.name not in ONLY_WHEN_SET or any(one.source != ConfigSource.DEFAULT for one in synonyms):
            found.append(build_entry(option, synonyms, read_only=option.name not in dynamic_options(), value=value))
    of_listeners = [
        build_entry(option, broker_synonyms(option, broker), read_only=False)
        for option in broker.list_listener_options()
    ]
    listed = {each.name for each in found} | {each.name for each in of_listeners} | dynamic_options().keys()
    return sorted(found + of_listeners + foreign_entries(broker, listed), key=lambda each: each.name)


def foreign_entries(broker: DynamicSettings, listed: Set[str]) -> list[DescribeConfigsResourceResult]:
    """Return further settings that Kafka lists, and custom configs, without their values, which may be secrets."""
    known = {
        name: foreign_entry(name, each, changed_layers(name, broker))
        for name, each in OF_BROKERS.items()
        if name not in listed
    }
    custom = (broker.own.keys() | broker.for_all.keys()) - listed - known.keys()
    return [*known.values(), *(custom_entry(name, changed_layers(name, broker)) for name in custom)]


def changed_layers(name: str, broker: DynamicSettings) -> list[DescribeConfigsSynonym]:
    """Return the values that were set at run time or at the start, with their sources."""
    started_with = str(broker.given.node_id) if name == "broker.id" else broker.given.also_given.get(name)
    layers = (
        (broker.own.get(name), ConfigSource.CHANGED),
        (broker.for_all.get(name), ConfigSource.CHANGED_FOR_ALL),
        (started_with, ConfigSource.BROKER),
    )
    return [DescribeConfigsSynonym(name, value, source) for value, source in layers if value is not None]


def foreign_entry(
    name: str, config: ForeignConfig, layers: Sequence[DescribeConfigsSynonym]
) -> DescribeConfigsResourceResult:
    """Return a config of Kafka that has no effect here."""
    secret = config.kind == ConfigType.PASSWORD
    default = [] if config.default is None else [DescribeConfigsSynonym(name, config.default, ConfigSource.DEFAULT)]
    synonyms = [*layers, *default]
    return DescribeConfigsResourceResult(
        name=name,
        value=None if secret or not synonyms else synonyms[0].value,
        is_sensitive=secret,
        read_only=not config.is_dynamic,
        config_source=synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        synonyms=[replace(each, value=None) for each in synonyms] if secret else synonyms,
        config_type=config.kind,
        documentation="Listed for tools of Apache Kafka; it has no effect here.",
    )


def custom_entry(name: str, layers: Sequence[DescribeConfigsSynonym]) -> DescribeConfigsResourceResult:
    """Return the entry of a config with an unknown name."""
    return DescribeConfigsResourceResult(
        name=name,
        is_sensitive=True,
        read_only=True,
        config_source=layers[0].source,
        synonyms=[replace(each, value=None) for each in layers],
        config_type=0,
    )


def entries_for_all(broker: DynamicSettings) -> list[DescribeConfigsResourceResult]:
    """Return the configs that were set for all brokers of the cluster at run time."""
    options = broker.dynamic()
    shown = find_cluster_default(options[MIN_ISR], broker.given)
    values = {**({} if shown is None else {MIN_ISR: shown}), **broker.for_all}
    return [
        build_entry(options[name], [DescribeConfigsSynonym(name, value, ConfigSource.CHANGED_FOR_ALL)], read_only=False)
        if name in options
        else entry_without_effect(name, [DescribeConfigsSynonym(name, value, ConfigSource.CHANGED_FOR_ALL)])
        for name, value in sorted(values.items())
    ]


def entry_without_effect(name: str, layers: Sequence[DescribeConfigsSynonym]) -> DescribeConfigsResourceResult:
    """Return a changed config that is stored, and has no effect on any broker."""
    known = OF_BROKERS.get(name)
    return custom_entry(name, layers) if known is None else foreign_entry(name, known, layers)


def broker_synonyms(option: Option, broker: DynamicSettings) -> list[DescribeConfigsSynonym]:
    """Return the values of a broker setting by source, the effective one first."""
    layers = (
        (broker.own.get(option.name), ConfigSource.CHANGED),
        (broker.for_all.get(option.name) or find_cluster_default(option, broker.given), ConfigSource.CHANGED_FOR_ALL),
        (format_given(option, broker.given), ConfigSource.BROKER),
        (
            None if option.name in WITHOUT_DEFAULT | {"node.id"} else format_or_none(option.default),
            ConfigSource.DEFAULT,
        ),
    )
    return [DescribeConfigsSynonym(option.name, value, source) for value, source in layers if value is not None]


def find_cluster_default(option: Option, given: BrokerConfig) -> str | None:
    """Return the value of min.insync.replicas that Kafka's controllers set for all brokers.

    They set their own as soon as eligible.leader.replicas.version is 1.

    A broker without controllers only lists it so and stores no record, so that its setting also counts at the next
    start.
    """
    return format_or_none(getattr(given, option.field)) if option.name == MIN_ISR and not given.joins_cluster else None


def format_given(option: Option, given: BrokerConfig) -> str | None:
    """Return the value of a setting at the start, None if it was not set."""
    if option.name in given.for_listeners:
        return format_or_none(given.for_listeners[option.name])
    if option.name == "node.id":
        return format_or_none(given.node_id)  # without which Kafka does not start
    is_alias = any(ALIASES[name].name == option.name for name in given.also_given if name in ALIASES)
    return format_or_none(getattr(given, option.field)) if option.field in given.given and not is_alias else None


def format_or_none(value: Any) -> str | None:
    """Return a value as text. The text of a secret is never listed."""
    return None if value is None else format_value(value.value if isinstance(value, Password) else value)


def build_entry(
    option: Option, synonyms: Sequence[DescribeConfigsSynonym], *, read_only: bool, value: str | None = None
) -> DescribeConfigsResourceResult:
    """Return the entry of a config. Without synonyms it has the default `value`."""
    first = synonyms[0] if synonyms else DescribeConfigsSynonym(option.name, value, ConfigSource.DEFAULT)
    kind = KINDS.get(option.name) or find_type(option.type)
    secret = kind is ConfigType.PASSWORD
    return DescribeConfigsResourceResult(
        name=option.name,
        value=None if secret else first.value,
        is_sensitive=secret,
        read_only=read_only,
        config_source=first.source,
        synonyms=[replace(each, value=None) for each in synonyms] if secret else synonyms,
        config_type=kind,
        documentation=option.doc,
    )


def find_type(hint: Any) -> ConfigType:
    """Return the config type of a declared type."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, UnionType):
        return find_type(next(arg for arg in args if arg is not type(None)))
    if origin is Annotated:
        return apply_bounds(find_type(args[0]), args[1:])
    if origin is Literal:
        return ConfigType.INT if isinstance(args[0], int) else ConfigType.STRING
    return ConfigType.LIST if origin is tuple else PLAIN[hint]


def apply_bounds(kind: ConfigType, rules: Sequence[Any]) -> ConfigType:
    """Return INT for a number that fits into 32 bits, and keep SHORT for one with the range of 16 bits."""
    most = min((rule.most for rule in rules if isinstance(rule, Between) and rule.most is not None), default=None)
    if kind is not ConfigType.LONG or most is None or most > INT32_MAX:
        return kind
    return ConfigType.SHORT if most == INT16_MAX else ConfigType.INT
