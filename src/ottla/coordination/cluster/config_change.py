"""IncrementalAlterConfigs and AlterConfigs: validate changes and return the records. Pure.

Source of the rules: KIP-226 (brokers), KIP-339, KIP-714 (client metrics), KIP-848 (groups).

Topics, brokers, groups and client metrics subscriptions have configs. Each resource of a request has its own result:
all of its changes are valid, or none is applied. AlterConfigs replaces all configs of a resource;
IncrementalAlterConfigs sets, deletes, appends to or subtracts from single ones. A record has the resulting value of one
config, so a repeated request writes nothing.
"""

from __future__ import annotations

import typing
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ottla.config import Option, convert, split_list
from ottla.coordination.cluster import client_metrics, group_configs, topic_configs, topic_names
from ottla.coordination.cluster.events import ConfigChangeRequested, ConfigReplacementRequested
from ottla.coordination.cluster.records import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    ConfigRecord,
)
from ottla.coordination.cluster.topic import ClusterTopic
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


class ConfiguredResource(NamedTuple):
    """A resource with configs: a topic, a broker or all brokers, a group, or a client metrics subscription."""

    kind: int
    name: str
    configs: Configs
    """The configs that are set on the resource itself."""
    defaults: Configs
    options: Mapping[str, Option]

    def find_fault(self, name: str, value: str) -> str | None:
        """Return the error of an invalid value; None if it is valid."""
        if self.kind in FAULTS:
            return FAULTS[self.kind](name, value)
        try:
            convert(name, value, self.options[name].type)
        except ConfigError as error:
            return str(error)
        return None


FAULTS: Mapping[int, Callable[[str, str], str | None]] = {
    TOPIC_RESOURCE: topic_configs.find_fault,
    GROUP_RESOURCE: group_configs.find_fault,
    CLIENT_METRICS_RESOURCE: client_metrics.find_fault,
}
"""Kind of resource → its validation, for kinds with other config names than the broker's settings."""


class KnownConfigs(NamedTuple):
    """The present configs of all resources."""

    topics: Mapping[str, ClusterTopic]
    brokers: Mapping[str, Configs]
    groups: Mapping[str, Configs]
    subscriptions: Mapping[str, Configs]
    """The client metrics subscriptions."""
    is_min_isr_unified: bool = False
    """True while ELRs require the same `min.insync.replicas` on all brokers (KIP-966, see `controller/min_isr`)."""


def decide(known: KnownConfigs, event: ConfigChangeRequested | ConfigReplacementRequested) -> Decision[Message]:
    """Return the records of the valid changes. The reply has None or a Refusal per resource, in order."""
    records: list[Message] = []
    refusals: list[Refusal | None] = []
    counts = Counter((wanted.resource_type, wanted.resource_name) for wanted in event.resources)
    for wanted in event.resources:
        try:
            if counts[wanted.resource_type, wanted.resource_name] > 1:
                raise Refusal(
                    ErrorCode.INVALID_REQUEST,
                    "a resource is named more than once: name each with all that is to change",
                )
            target = find_resource(known, wanted, event)
            changes = build_records(target, apply_request(target, wanted, event))
            if known.is_min_isr_unified:
                check_min_isr(changes)
            records += changes
            refusals.append(None)
        except Refusal as refusal:
            refusals.append(refusal)
    return Decision(() if event.validate_only else tuple(records), (Reply(event.ticket, refusals),))


def find_resource(
    known: KnownConfigs, wanted: Resource, event: ConfigChangeRequested | ConfigReplacementRequested
) -> ConfiguredResource:
    """Return the resource of a request. Raise Refusal if it does not exist or has no configs."""
    kind, name = wanted.resource_type, wanted.resource_name
    if kind == BROKER_RESOURCE:
        check_broker(wanted, event)
        defaults = {each.name: format_default(each) for each in event.broker_options.values()}
        return ConfiguredResource(kind, name, known.brokers.get(name, {}), defaults, event.broker_options)
    if kind == GROUP_RESOURCE:
        if not name:
            raise Refusal(ErrorCode.INVALID_REQUEST, "groups have no default configs: name a group")
        options = group_configs.list_options()
        defaults = {each.name: format_default(each) for each in options.values()}
        defaults |= {each: str(bound.default) for each, bound in event.group_bounds.items()}
        return ConfiguredResource(kind, name, known.groups.get(name, {}), defaults, options)
    if kind == CLIENT_METRICS_RESOURCE:
        if not name:
            raise Refusal(ErrorCode.INVALID_REQUEST, "subscriptions have no default configs: name one")
        own = known.subscriptions.get(name, {})
        return ConfiguredResource(kind, name, own, client_metrics.list_defaults(), client_metrics.list_options())
    if kind != TOPIC_RESOURCE:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {kind}")
    topic = find_topic(known.topics, name)
    from_broker = event.broker_configs if isinstance(event, ConfigChangeRequested) else {}
    return ConfiguredResource(
        kind, name, topic.configs, {**topic_configs.list_defaults(), **from_broker}, topic_configs.list_options()
    )


def format_default(option: Option) -> str:
    """Return the default of a setting as text; an empty text if it has none."""
    return "" if option.default is None else topic_configs.format_value(option.default)


def check_broker(wanted: Resource, event: ConfigChangeRequested | ConfigReplacementRequested) -> None:
    """Raise Refusal for another broker than this one, and for settings that are only read at startup."""
    name = wanted.resource_name
    if name and not name.isdecimal():
        raise Refusal(
            ErrorCode.INVALID_REQUEST,
            f"{name!r} is not a broker id: expected a number, or an empty name for the defaults of all brokers",
        )
    if name and event.node_id is not None and int(name) != event.node_id:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"this is broker {event.node_id}, not {name}")
    # DELETE of a setting that cannot be set is accepted: Kafka's tools delete every setting that they could have set.
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


def find_topic(topics: Mapping[str, ClusterTopic], name: str) -> ClusterTopic:
    """Return the topic. Raise Refusal if it does not exist."""
    if not name:
        raise Refusal(ErrorCode.INVALID_REQUEST, "topics have no default configs: name a topic")
    topic = topics.get(name)
    if topic is not None:
        return topic
    fault = topic_names.find_fault(name)
    if fault:
        raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")


def apply_request(
    target: ConfiguredResource, wanted: Resource, event: ConfigChangeRequested | ConfigReplacementRequested
) -> Configs:
    """Return the configs of the resource after the request. Raise Refusal if they are invalid."""
    names = Counter(config.name for config in wanted.configs)
    if any(count > 1 for count in names.values()):
        raise Refusal(ErrorCode.INVALID_REQUEST, "a config is named twice")
    check_values(wanted)
    configs = dict(target.configs) if isinstance(event, ConfigChangeRequested) else {}
    for config in wanted.configs:
        if isinstance(config, alter_configs.AlterableConfig) or isinstance(event, ConfigReplacementRequested):
            configs[config.name] = config.value or ""
        else:
            apply_operation(target, configs, config)
    check_configs(target, {name: configs[name] for name in names if name in configs}, configs, event)
    return configs


def check_values(wanted: Resource) -> None:
    """Raise Refusal if a config has no value and is not to be deleted."""
    nameless = [
        config.name
        for config in wanted.configs
        if config.value is None and getattr(config, "config_operation", SET) != DELETE
    ]
    if nameless:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"no value is given for {', '.join(nameless)}")


def check_min_isr(changes: Sequence[ConfigRecord]) -> None:
    """Raise Refusal for `min.insync.replicas` of a single broker, and for the deletion of the cluster-wide value."""
    for change in changes:
        if change.resource_type != BROKER_RESOURCE or change.name != "min.insync.replicas":
            continue
        if change.resource_name:
            raise Refusal(ErrorCode.INVALID_CONFIG, f"{ONE_MIN_ISR}: change it for all brokers, or for a topic")
        if change.value is None:
            raise Refusal(ErrorCode.INVALID_CONFIG, f"{ONE_MIN_ISR}, and there has to be one: set another")


def check_configs(
    target: ConfiguredResource,
    changed: Configs,
    configs: Configs,
    event: ConfigChangeRequested | ConfigReplacementRequested,
) -> None:
    """Raise Refusal if a value is invalid by itself, or conflicts with another config."""
    faults = [target.find_fault(name, value) for name, value in changed.items()]
    fault = next(filter(None, faults), None)
    if target.kind == TOPIC_RESOURCE:
        fault = fault or topic_configs.find_conflict(configs)
    elif target.kind == GROUP_RESOURCE:
        fault = fault or group_configs.find_conflict(changed, configs, event.group_bounds)
    if fault:
        raise Refusal(ErrorCode.INVALID_CONFIG if target.kind in FAULTS else ErrorCode.INVALID_REQUEST, fault)


def apply_operation(
    target: ConfiguredResource, configs: dict[str, str], config: incremental_alter_configs.AlterableConfig
) -> None:
    """Apply one operation of IncrementalAlterConfigs to `configs`."""
    operation, name, value = config.config_operation, config.name, config.value or ""
    if operation == SET:
        configs[name] = value
    elif operation == DELETE:
        configs.pop(name, None)
    elif operation in LIST_OPERATIONS:
        check_list(target, name, operation)
        present = configs.get(name, target.defaults[name])
        configs[name] = ",".join(LIST_OPERATIONS[operation](split_list(present), split_list(value)))
    else:
        raise Refusal(ErrorCode.INVALID_REQUEST, f"Unsupported operation {operation}")


def check_list(target: ConfiguredResource, name: str, operation: int) -> None:
    """Raise Refusal if APPEND or SUBTRACT is used with a config that is not a list."""
    option = target.options.get(name)
    if option is None:
        raise Refusal(ErrorCode.INVALID_CONFIG, target.find_fault(name, "") or "")
    if typing.get_origin(option.type) is not tuple:
        raise Refusal(ErrorCode.INVALID_CONFIG, f"{name} is no list, and only lists can be {VERBS[operation]}")


def append_items(present: Sequence[str], more: Sequence[str]) -> list[str]:
    """Return the list with the missing items of `more` appended."""
    known = frozenset(present)
    return [*present, *(part for part in dict.fromkeys(more) if part not in known)]


def subtract_items(present: Sequence[str], less: Sequence[str]) -> list[str]:
    """Return the list without the items of `less`."""
    removed = frozenset(less)
    return [part for part in present if part not in removed]


LIST_OPERATIONS: Mapping[int, Callable[[Sequence[str], Sequence[str]], list[str]]] = {
    APPEND: append_items,
    SUBTRACT: subtract_items,
}


def build_records(target: ConfiguredResource, configs: Configs) -> list[ConfigRecord]:
    """Return a record for each config that changes."""
    return [
        ConfigRecord(target.kind, target.name, name, configs.get(name))
        for name in sorted(target.configs.keys() | configs.keys())
        if target.configs.get(name) != configs.get(name)
    ]
