"""Every config of a topic, a group or of the broker as clients are shown it: value, source, synonyms, type and text."""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Annotated, Any, Literal

from ottla.broker.config import TOPIC_CONFIGS
from ottla.broker.settings import Settings, broker_table, dynamic_options
from ottla.config import Between, Option
from ottla.coordination.cluster import group_configs, topic_configs
from ottla.coordination.cluster.topic_configs import Source, as_text
from ottla.protocol.messages.describe_configs import DescribeConfigsResourceResult, DescribeConfigsSynonym
from ottla.storage.log_config import INT_MAX


class ConfigType(IntEnum):
    """What kind of value a config takes, as the protocol counts them."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


PLAIN = {bool: ConfigType.BOOLEAN, str: ConfigType.STRING, int: ConfigType.LONG, float: ConfigType.DOUBLE}


def topic_entries(configs: Mapping[str, str], broker: Settings) -> list[DescribeConfigsResourceResult]:
    """The configs of a topic that sets `configs` itself; they can be changed."""
    return [
        entry(option, topic_synonyms(name, configs, broker), read_only=False)
        for name, option in sorted(topic_configs.table().items())
    ]


def topic_synonyms(name: str, configs: Mapping[str, str], broker: Settings) -> list[DescribeConfigsSynonym]:
    """Where a topic's config may have its value from, the one that counts first."""
    own = [DescribeConfigsSynonym(name, configs[name], Source.TOPIC)] if name in configs else []
    setting = TOPIC_CONFIGS.get(name)
    if setting is None:
        return [*own, DescribeConfigsSynonym(name, topic_configs.defaults()[name], Source.DEFAULT)]
    return [*own, *broker_synonyms(broker_table()[setting], broker)]


def group_entries(configs: Mapping[str, str], broker: Settings) -> list[DescribeConfigsResourceResult]:
    """The configs of a group that sets `configs` itself; there need not be such a group."""
    return [
        entry(option, group_synonyms(name, configs, broker), read_only=False)
        for name, option in sorted(group_configs.table().items())
    ]


def group_synonyms(name: str, configs: Mapping[str, str], broker: Settings) -> list[DescribeConfigsSynonym]:
    """Where a group's config may have its value from, the one that counts first."""
    own = [DescribeConfigsSynonym(name, configs[name], Source.GROUP)] if name in configs else []
    setting = broker_table()[f"group_{name}".replace(".", "_")]
    return [*own, *broker_synonyms(setting, broker)]


def broker_entries(broker: Settings) -> list[DescribeConfigsResourceResult]:
    """The settings of the broker; most are read when it starts, and never changed."""
    return [
        entry(option, broker_synonyms(option, broker), read_only=option.name not in dynamic_options())
        for option in sorted(broker_table().values(), key=lambda option: option.name)
    ]


def entries_for_all(broker: Settings) -> list[DescribeConfigsResourceResult]:
    """What was set for every broker of the cluster at run time."""
    return [
        entry(dynamic_options()[name], [DescribeConfigsSynonym(name, value, Source.CHANGED_FOR_ALL)], read_only=False)
        for name, value in sorted(broker.for_all.items())
        if name in dynamic_options()
    ]


def broker_synonyms(option: Option, broker: Settings) -> list[DescribeConfigsSynonym]:
    """What a setting of the broker is, and what it would be without the change, and by default."""
    layers = (
        (broker.own.get(option.name), Source.CHANGED),
        (broker.for_all.get(option.name), Source.CHANGED_FOR_ALL),
        (as_text(getattr(broker.given, option.field)) if option.field in broker.given.given else None, Source.BROKER),
        (as_text(option.default), Source.DEFAULT),
    )
    return [DescribeConfigsSynonym(option.name, value, source) for value, source in layers if value is not None]


def entry(
    option: Option, synonyms: Sequence[DescribeConfigsSynonym], *, read_only: bool
) -> DescribeConfigsResourceResult:
    """One config, with everything that can be said of it."""
    first = synonyms[0]
    return DescribeConfigsResourceResult(
        name=option.name,
        value=first.value,
        read_only=read_only,
        config_source=first.source,
        synonyms=synonyms,
        config_type=type_of(option.type),
        documentation=option.doc,
    )


def type_of(hint: Any) -> ConfigType:
    """The kind of value that a declared type stands for."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return bounded(type_of(args[0]), args[1:])
    if origin is Literal:
        return ConfigType.INT if isinstance(args[0], int) else ConfigType.STRING
    return ConfigType.LIST if origin is tuple else PLAIN[hint]


def bounded(kind: ConfigType, rules: Sequence[Any]) -> ConfigType:
    """A number that has room in 32 bits is an INT."""
    small = any(isinstance(rule, Between) and rule.most is not None and rule.most <= INT_MAX for rule in rules)
    return ConfigType.INT if kind is ConfigType.LONG and small else kind
