"""Every config of a topic, a group or of the broker as clients are shown it: value, source, synonyms, type and text."""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence, Set
from enum import IntEnum
from types import UnionType
from typing import Annotated, Any, Literal, Union

from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.dynamic_config import Settings, broker_table, dynamic_options
from ottla.broker.settings.foreign_configs import OF_BROKERS, OF_GROUPS, ForeignConfig
from ottla.broker.settings.kafka_settings import ALIASES
from ottla.broker.settings.topic_configs import TOPIC_CONFIGS
from ottla.config import Between, Option, Password
from ottla.coordination.cluster import client_metrics, group_configs, topic_configs
from ottla.coordination.cluster.topic_configs import Source, as_text
from ottla.model import INT16_MAX, INT32_MAX
from ottla.protocol.messages.describe_configs import DescribeConfigsResourceResult, DescribeConfigsSynonym
from ottla.protocol.schema import replace


class ConfigType(IntEnum):
    """What kind of value a config takes, as the protocol counts them."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    PASSWORD = 9


KINDS = {
    "advertised.listeners": ConfigType.LIST,
    "controller.quorum.voters": ConfigType.LIST,
    "group.consumer.assignors": ConfigType.LIST,
    "listeners": ConfigType.LIST,
    "ssl.principal.mapping.rules": ConfigType.STRING,
    "log.dirs": ConfigType.LIST,
    "max.connections.per.ip.overrides": ConfigType.STRING,
}
"""Settings that Kafka takes for another kind of value than we read them as."""
THROTTLES = frozenset(
    (
        "follower.replication.throttled.rate",
        "leader.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    )
)
WITHOUT_DEFAULT = THROTTLES | {"log.flush.interval.ms", "log.retention.ms", "log.roll.ms"}
"""Settings of which Kafka tells no default; for the last three it falls back to others, in larger units."""
MIN_ISR = "min.insync.replicas"
ONLY_WHEN_SET = THROTTLES | {"producer.id.expiration.check.interval.ms"}
"""Settings of which Kafka says nothing as long as nobody sets them."""
BROKERS_NAMES = {
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "local.retention.bytes": "log.local.retention.bytes",
    "local.retention.ms": "log.local.retention.ms",
    "preallocate": "log.preallocate",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
}
"""What a topic's config is called among the settings of Kafka's brokers, where this broker has none for it."""
PLAIN = {
    Password: ConfigType.PASSWORD,
    bool: ConfigType.BOOLEAN,
    str: ConfigType.STRING,
    int: ConfigType.LONG,
    float: ConfigType.DOUBLE,
}


def topic_entries(configs: Mapping[str, str], broker: Settings) -> list[DescribeConfigsResourceResult]:
    """The configs of a topic that sets `configs` itself; they can be changed."""
    return [
        entry(option, topic_synonyms(name, configs, broker), read_only=False, value=topic_default(name, broker))
        for name, option in sorted(topic_configs.table().items())
    ]


def topic_default(name: str, broker: Settings) -> str:
    """What a config is if neither its topic nor its own setting of the broker is set; `log.retention.hours` may be."""
    setting = TOPIC_CONFIGS.get(name)
    return topic_configs.defaults()[name] if setting is None else as_text(getattr(broker.given, setting))


def topic_synonyms(name: str, configs: Mapping[str, str], broker: Settings) -> list[DescribeConfigsSynonym]:
    """Where a topic's config may have its value from, the one that counts first."""
    own = [DescribeConfigsSynonym(name, configs[name], Source.TOPIC)] if name in configs else []
    setting = TOPIC_CONFIGS.get(name)
    if setting is None:
        brokers_name = BROKERS_NAMES.get(name)
        value = topic_configs.defaults()[name]
        return [*own, DescribeConfigsSynonym(brokers_name, value, Source.DEFAULT)] if brokers_name else own
    return [*own, *broker_synonyms(broker_table()[setting], broker)]


def group_entries(configs: Mapping[str, str], broker: Settings) -> list[DescribeConfigsResourceResult]:
    """The configs of a group that sets `configs` itself; there need not be such a group."""
    own = [
        entry(option, group_synonyms(name, configs, broker), read_only=False)
        for name, option in group_configs.table().items()
    ]
    listed = {each.name for each in own}
    others = [of_group(name, each) for name, each in OF_GROUPS.items() if name not in listed]
    return sorted(own + others, key=lambda each: each.name)


def of_group(name: str, config: ForeignConfig) -> DescribeConfigsResourceResult:
    """A config of groups of other kinds, or one that this broker does not act by; it cannot be changed."""
    synonym = DescribeConfigsSynonym(f"group.{name}", config.default, Source.DEFAULT)
    return replace(foreign_entry(name, config, []), synonyms=[synonym], read_only=True)


def subscription_entries(configs: Mapping[str, str]) -> list[DescribeConfigsResourceResult]:
    """The configs of a subscription to metrics of clients."""
    return [
        entry(
            option,
            [DescribeConfigsSynonym(name, configs[name], Source.SUBSCRIPTION)] if name in configs else [],
            read_only=False,
            value=client_metrics.defaults()[name],
        )
        for name, option in sorted(client_metrics.table().items())
    ]


def group_synonyms(name: str, configs: Mapping[str, str], broker: Settings) -> list[DescribeConfigsSynonym]:
    """Where a group's config may have its value from, the one that counts first."""
    own = [DescribeConfigsSynonym(name, configs[name], Source.GROUP)] if name in configs else []
    setting = broker_table()[f"group_{name}".replace(".", "_")]
    return [*own, *broker_synonyms(setting, broker)]


def broker_entries(broker: Settings, reached_at: str = "") -> list[DescribeConfigsResourceResult]:
    """The settings of the broker; most are read when it starts, and never changed.

    `reached_at` is what clients are told of its addresses where `advertised.listeners` does not say.
    """
    found = []
    for option in sorted(broker_table().values(), key=lambda option: option.name):
        synonyms = broker_synonyms(option, broker)
        value = None if option.name in WITHOUT_DEFAULT else text_of(option.default)
        if option.name == "advertised.listeners" and not broker.given.advertised_listeners:
            synonyms, value = [], reached_at
        if option.name not in ONLY_WHEN_SET or any(one.source != Source.DEFAULT for one in synonyms):
            found.append(entry(option, synonyms, read_only=option.name not in dynamic_options(), value=value))
    of_listeners = [entry(option, broker_synonyms(option, broker), read_only=False) for option in broker.of_listeners()]
    listed = {each.name for each in found} | {each.name for each in of_listeners} | dynamic_options().keys()
    return sorted(found + of_listeners + foreign_entries(broker, listed), key=lambda each: each.name)


def foreign_entries(broker: Settings, listed: Set[str]) -> list[DescribeConfigsResourceResult]:
    """What Kafka lists besides, and custom configs, whose values are not shown, since they may be secrets."""
    known = {
        name: foreign_entry(name, each, changed_layers(name, broker))
        for name, each in OF_BROKERS.items()
        if name not in listed
    }
    custom = (broker.own.keys() | broker.for_all.keys()) - listed - known.keys()
    return [*known.values(), *(custom_entry(name, changed_layers(name, broker)) for name in custom)]


def changed_layers(name: str, broker: Settings) -> list[DescribeConfigsSynonym]:
    """Where a config was set, at run time or at the start."""
    started_with = str(broker.given.node_id) if name == "broker.id" else broker.given.also_given.get(name)
    layers = (
        (broker.own.get(name), Source.CHANGED),
        (broker.for_all.get(name), Source.CHANGED_FOR_ALL),
        (started_with, Source.BROKER),
    )
    return [DescribeConfigsSynonym(name, value, source) for value, source in layers if value is not None]


def foreign_entry(
    name: str, config: ForeignConfig, layers: Sequence[DescribeConfigsSynonym]
) -> DescribeConfigsResourceResult:
    """A config that this broker does not act by."""
    secret = config.kind == ConfigType.PASSWORD
    default = [] if config.default is None else [DescribeConfigsSynonym(name, config.default, Source.DEFAULT)]
    synonyms = [*layers, *default]
    return DescribeConfigsResourceResult(
        name=name,
        value=None if secret or not synonyms else synonyms[0].value,
        is_sensitive=secret,
        read_only=not config.is_dynamic,
        config_source=synonyms[0].source if synonyms else Source.DEFAULT,
        synonyms=[replace(each, value=None) for each in synonyms] if secret else synonyms,
        config_type=config.kind,
        documentation="Listed for tools of Apache Kafka; it has no effect here.",
    )


def custom_entry(name: str, layers: Sequence[DescribeConfigsSynonym]) -> DescribeConfigsResourceResult:
    """A config whose name is not known."""
    return DescribeConfigsResourceResult(
        name=name,
        is_sensitive=True,
        read_only=True,
        config_source=layers[0].source,
        synonyms=[replace(each, value=None) for each in layers],
        config_type=0,
    )


def entries_for_all(broker: Settings) -> list[DescribeConfigsResourceResult]:
    """What was set for every broker of the cluster at run time."""
    options = broker.dynamic()
    shown = default_of_cluster(options[MIN_ISR], broker.given)
    values = {**({} if shown is None else {MIN_ISR: shown}), **broker.for_all}
    return [
        entry(options[name], [DescribeConfigsSynonym(name, value, Source.CHANGED_FOR_ALL)], read_only=False)
        if name in options
        else entry_without_effect(name, [DescribeConfigsSynonym(name, value, Source.CHANGED_FOR_ALL)])
        for name, value in sorted(values.items())
    ]


def entry_without_effect(name: str, layers: Sequence[DescribeConfigsSynonym]) -> DescribeConfigsResourceResult:
    """A change that is kept and that no broker acts by."""
    known = OF_BROKERS.get(name)
    return custom_entry(name, layers) if known is None else foreign_entry(name, known, layers)


def broker_synonyms(option: Option, broker: Settings) -> list[DescribeConfigsSynonym]:
    """What a setting of the broker is, and what it would be without the change, and by default."""
    layers = (
        (broker.own.get(option.name), Source.CHANGED),
        (broker.for_all.get(option.name) or default_of_cluster(option, broker.given), Source.CHANGED_FOR_ALL),
        (given_text(option, broker.given), Source.BROKER),
        (None if option.name in WITHOUT_DEFAULT | {"node.id"} else text_of(option.default), Source.DEFAULT),
    )
    return [DescribeConfigsSynonym(option.name, value, source) for value, source in layers if value is not None]


def default_of_cluster(option: Option, given: BrokerConfig) -> str | None:
    """What Kafka's controllers set for all brokers as soon as eligible.leader.replicas.version is 1: the number that there is.

    A broker that is its own controller shows it so and keeps no record, so its settings count at the next start as well.
    """
    return text_of(getattr(given, option.field)) if option.name == MIN_ISR and not given.joins else None


def given_text(option: Option, given: BrokerConfig) -> str | None:
    """What a broker was started with; None where that was not said."""
    if option.name in given.for_listeners:
        return text_of(given.for_listeners[option.name])
    if option.name == "node.id":
        return text_of(given.node_id)  # without which Kafka does not start
    is_alias = any(ALIASES[name].name == option.name for name in given.also_given if name in ALIASES)
    return text_of(getattr(given, option.field)) if option.field in given.given and not is_alias else None


def text_of(value: Any) -> str | None:
    """A value as text; a secret is a text like others here, and is not told."""
    return None if value is None else as_text(value.value if isinstance(value, Password) else value)


def entry(
    option: Option, synonyms: Sequence[DescribeConfigsSynonym], *, read_only: bool, value: str | None = None
) -> DescribeConfigsResourceResult:
    """One config, with everything that can be said of it; without synonyms it has the default `value`."""
    first = synonyms[0] if synonyms else DescribeConfigsSynonym(option.name, value, Source.DEFAULT)
    kind = KINDS.get(option.name) or type_of(option.type)
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


def type_of(hint: Any) -> ConfigType:
    """The kind of value that a declared type stands for."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, UnionType):
        return type_of(next(arg for arg in args if arg is not type(None)))
    if origin is Annotated:
        return bounded(type_of(args[0]), args[1:])
    if origin is Literal:
        return ConfigType.INT if isinstance(args[0], int) else ConfigType.STRING
    return ConfigType.LIST if origin is tuple else PLAIN[hint]


def bounded(kind: ConfigType, rules: Sequence[Any]) -> ConfigType:
    """A number that has room in 32 bits is an INT; a SHORT has all the room of 16."""
    most = min((rule.most for rule in rules if isinstance(rule, Between) and rule.most is not None), default=None)
    if kind is not ConfigType.LONG or most is None or most > INT32_MAX:
        return kind
    return ConfigType.SHORT if most == INT16_MAX else ConfigType.INT
