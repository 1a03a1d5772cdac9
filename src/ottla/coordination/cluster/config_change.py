"""What to answer to a wish for other configs, and the records that make it true. Pure."""

from __future__ import annotations

import typing
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ottla.config import Option, convert
from ottla.coordination.cluster import client_metrics, group_configs, topic_configs, topic_names
from ottla.coordination.cluster.events import ConfigsChanged, ConfigsReplaced
from ottla.coordination.cluster.records import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    ConfigRecord,
)
from ottla.coordination.cluster.topic import Topic
from ottla.coordination.cluster.topic_request import Refusal
from ottla.coordination.machine import Decision, Reply
from ottla.errors import ConfigError, ErrorCode
from ottla.protocol.messages import alter_configs, incremental_alter_configs
from ottla.protocol.messages.incremental_alter_configs import APPEND, DELETE, SET, SUBTRACT
from ottla.protocol.schema import Message

ONE_MIN_ISR = "min.insync.replicas is one number for all brokers where eligible.leader.replicas.version is 1"
VERBS = {APPEND: "appended to", SUBTRACT: "subtracted from"}
Resource = alter_configs.AlterConfigsResource | incremental_alter_configs.AlterConfigsResource
Configs = Mapping[str, str]


class ConfigHolder(NamedTuple):
    """What has configs: a topic, brokers, a group, or a subscription to metrics of clients."""

    kind: int
    name: str
    configs: Configs
    """What it sets itself."""
    defaults: Configs
    options: Mapping[str, Option]

    def fault_of(self, name: str, value: str) -> str | None:
        """What is wrong with a value, in a sentence; None when nothing is."""
        if self.kind in FAULTS:
            return FAULTS[self.kind](name, value)
        try:
            convert(name, value, self.options[name].type)
        except ConfigError as error:
            return str(error)
        return None


FAULTS: Mapping[int, Callable[[str, str], str | None]] = {
    TOPIC_RESOURCE: topic_configs.fault_of,
    GROUP_RESOURCE: group_configs.fault_of,
    CLIENT_METRICS_RESOURCE: client_metrics.fault_of,
}
"""What is wrong with a config of a kind of resource whose names are not those of the broker's settings."""


class KnownConfigs(NamedTuple):
    """What sets configs by now."""

    topics: Mapping[str, Topic]
    brokers: Mapping[str, Configs]
    groups: Mapping[str, Configs]
    subscriptions: Mapping[str, Configs]
    """To metrics of clients."""
    one_min_isr: bool = False
    """Whether `min.insync.replicas` is one number for all brokers: where copies may lead that are out of sync (KIP-966)."""


def decide(known: KnownConfigs, event: ConfigsChanged | ConfigsReplaced) -> Decision[Message]:
    """The changes of each resource that may be changed, and for each None or why it may not."""
    records: list[Message] = []
    refusals: list[Refusal | None] = []
    wished = Counter((wanted.resource_type, wanted.resource_name) for wanted in event.resources)
    for wanted in event.resources:
        try:
            if wished[wanted.resource_type, wanted.resource_name] > 1:
                raise Refusal(
                    ErrorCode.INVALID_REQUEST,
                    "a resource is named more than once: name each with all that is to change",
                )
            target = find(known, wanted, event)
            changes = records_of(target, wished_configs(target, wanted, event))
            if known.one_min_isr:
                check_min_isr(changes)
            records += changes
            refusals.append(None)
        except Refusal as refusal:
            refusals.append(refusal)
    return Decision(() if event.validate_only else tuple(records), (Reply(event.ticket, refusals),))


def find(known: KnownConfigs, wanted: Resource, event: ConfigsChanged | ConfigsReplaced) -> ConfigHolder:
    """What a request wants to change."""
    kind, name = wanted.resource_type, wanted.resource_name
    if kind == BROKER_RESOURCE:
        check_broker(wanted, event)
        defaults = {each.name: default_text(each) for each in event.broker_options.values()}
        return ConfigHolder(kind, name, known.brokers.get(name, {}), defaults, event.broker_options)
    if kind == GROUP_RESOURCE:
        if not name:
            raise Refusal(ErrorCode.INVALID_REQUEST, "groups have no default configs: name a group")
        defaults = {each: str(bound.default) for each, bound in event.group_bounds.items()}
        return ConfigHolder(kind, name, known.groups.get(name, {}), defaults, group_configs.table())
    if kind == CLIENT_METRICS_RESOURCE:
        if not name:
            raise Refusal(ErrorCode.INVALID_REQUEST, "subscriptions have no default configs: name one")
        own = known.subscriptions.get(name, {})
        return ConfigHolder(kind, name, own, client_metrics.defaults(), client_metrics.table())
    if kind != TOPIC_RESOURCE:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {kind}")
    topic = find_topic(known.topics, name)
    from_broker = event.broker_configs if isinstance(event, ConfigsChanged) else {}
    return ConfigHolder(kind, name, topic.configs, {**topic_configs.defaults(), **from_broker}, topic_configs.table())


def default_text(option: Option) -> str:
    """What a setting is where nobody sets it; nothing for one that has no default."""
    return "" if option.default is None else topic_configs.as_text(option.default)


def check_broker(wanted: Resource, event: ConfigsChanged | ConfigsReplaced) -> None:
    """Refuse brokers that this one does not speak for, and settings that are read at a start alone."""
    name = wanted.resource_name
    if name and not name.isdecimal():
        raise Refusal(ErrorCode.INVALID_REQUEST, f"{name!r} is no broker id: give a number, or nothing for all brokers")
    if name and event.node_id is not None and int(name) != event.node_id:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"this is broker {event.node_id}, not {name}")
    # To take back what cannot have been set is no error: Kafka's tools do so with all that they might have set.
    fixed = [
        config.name
        for config in wanted.configs
        if config.name not in event.broker_options and getattr(config, "config_operation", SET) != DELETE
    ]
    if fixed:
        raise Refusal(
            ErrorCode.INVALID_REQUEST,
            f"a broker reads [{', '.join(fixed)}] when it starts, and not again",
        )


def find_topic(topics: Mapping[str, Topic], name: str) -> Topic:
    """The topic of that name."""
    if not name:
        raise Refusal(ErrorCode.INVALID_REQUEST, "topics have no default configs: name a topic")
    topic = topics.get(name)
    if topic is not None:
        return topic
    fault = topic_names.fault_of(name)
    if fault:
        raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")


def wished_configs(target: ConfigHolder, wanted: Resource, event: ConfigsChanged | ConfigsReplaced) -> Configs:
    """What it would set itself, checked."""
    names = Counter(config.name for config in wanted.configs)
    if any(count > 1 for count in names.values()):
        raise Refusal(ErrorCode.INVALID_REQUEST, "a config is named twice")
    check_values(wanted)
    configs = dict(target.configs) if isinstance(event, ConfigsChanged) else {}
    for config in wanted.configs:
        if isinstance(config, alter_configs.AlterableConfig) or isinstance(event, ConfigsReplaced):
            configs[config.name] = config.value or ""
        else:
            alter(target, configs, config)
    check_configs(target, {name: configs[name] for name in names if name in configs}, configs, event)
    return configs


def check_values(wanted: Resource) -> None:
    """Refuse configs without a value, where one is needed."""
    nameless = [
        config.name
        for config in wanted.configs
        if config.value is None and getattr(config, "config_operation", SET) != DELETE
    ]
    if nameless:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"no value is given for {', '.join(nameless)}")


def check_min_isr(changes: Sequence[ConfigRecord]) -> None:
    """Refuse a number of a broker's own, and none for all."""
    for change in changes:
        if change.resource_type != BROKER_RESOURCE or change.name != "min.insync.replicas":
            continue
        if change.resource_name:
            raise Refusal(ErrorCode.INVALID_CONFIG, f"{ONE_MIN_ISR}: change it for all brokers, or for a topic")
        if change.value is None:
            raise Refusal(ErrorCode.INVALID_CONFIG, f"{ONE_MIN_ISR}, and there has to be one: set another")


def check_configs(
    target: ConfigHolder, changed: Configs, configs: Configs, event: ConfigsChanged | ConfigsReplaced
) -> None:
    """Refuse values that cannot be, one by one and together."""
    faults = [target.fault_of(name, value) for name, value in changed.items()]
    fault = next(filter(None, faults), None)
    if target.kind == TOPIC_RESOURCE:
        fault = fault or topic_configs.conflict_of(configs)
    elif target.kind == GROUP_RESOURCE:
        fault = fault or group_configs.conflict_of(changed, configs, event.group_bounds)
    if fault:
        raise Refusal(ErrorCode.INVALID_CONFIG if target.kind in FAULTS else ErrorCode.INVALID_REQUEST, fault)


def alter(target: ConfigHolder, configs: dict[str, str], config: incremental_alter_configs.AlterableConfig) -> None:
    """Do to `configs` what one line of a request says."""
    operation, name, value = config.config_operation, config.name, config.value or ""
    if operation == SET:
        configs[name] = value
    elif operation == DELETE:
        configs.pop(name, None)
    elif operation in LIST_OPERATIONS:
        check_list(target, name, operation)
        present = configs.get(name, target.defaults[name])
        configs[name] = ",".join(LIST_OPERATIONS[operation](parts_of(present), parts_of(value)))
    else:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"Unsupported operation {operation}")


def check_list(target: ConfigHolder, name: str, operation: int) -> None:
    """Refuse to put parts into, or take them out of, what has no parts."""
    option = target.options.get(name)
    if option is None:
        raise Refusal(ErrorCode.INVALID_CONFIG, target.fault_of(name, "") or "")
    if typing.get_origin(option.type) is not tuple:
        raise Refusal(ErrorCode.INVALID_CONFIG, f"{name} is no list, and only lists can be {VERBS[operation]}")


def parts_of(value: str) -> list[str]:
    """The values in a list."""
    return [part.strip() for part in value.split(",") if part.strip()]


def appended(present: Sequence[str], more: Sequence[str]) -> list[str]:
    """A list with the parts of another that it lacks."""
    known = frozenset(present)
    return [*present, *(part for part in dict.fromkeys(more) if part not in known)]


def subtracted(present: Sequence[str], less: Sequence[str]) -> list[str]:
    """A list without the parts of another."""
    gone = frozenset(less)
    return [part for part in present if part not in gone]


LIST_OPERATIONS: Mapping[int, Callable[[Sequence[str], Sequence[str]], list[str]]] = {
    APPEND: appended,
    SUBTRACT: subtracted,
}


def records_of(target: ConfigHolder, configs: Configs) -> list[ConfigRecord]:
    """What the log says of every config that is not as it was."""
    return [
        ConfigRecord(target.kind, target.name, name, configs.get(name))
        for name in sorted(target.configs.keys() | configs.keys())
        if target.configs.get(name) != configs.get(name)
    ]
