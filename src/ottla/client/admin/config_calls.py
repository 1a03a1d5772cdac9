"""Configs of topics, brokers and groups: told, changed, and which resources have some."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ottla.client.admin.admin_api_driver import AdminApiDriver, Question, any_broker, each_broker, raise_first
from ottla.client.admin.config_resource import KINDS, SOURCES, ConfigEntry, ConfigResource
from ottla.client.interface.arguments import checked_dict, checked_flag, checked_list, checked_text
from ottla.client.runtime.deadline import Deadline
from ottla.errors import ErrorCode, KafkaError, error_for
from ottla.model import Node
from ottla.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.protocol.messages.incremental_alter_configs import (
    DELETE,
    SET,
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.protocol.messages.list_config_resources import ListConfigResourcesRequest

CONFIGS = "{'retention.ms': '3600000'}"
CHANGES = f"{{ConfigResource('topic', 'flights'): {CONFIGS}}}"
NAMES = {number: kind for kind, number in KINDS.items()}
OF_ONE_BROKER = ("broker", "broker-logger")
"""What only the broker in question knows."""


class ConfigCalls:
    """What an admin does with configs; `Admin` has the same names and says what they do."""

    def __init__(self, driver: AdminApiDriver) -> None:
        self._driver = driver

    def describe_configs(
        self, resources: Iterable[ConfigResource], timeout: float | None
    ) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        wanted = [
            checked(each) for each in checked_list("resources", resources, "[ConfigResource('topic', 'flights')]")
        ]
        question: Question[ConfigResource, dict[str, ConfigEntry]] = Question(
            who_knows,
            lambda some: DescribeConfigsRequest([DescribeConfigsResource(KINDS[kind], name) for kind, name in some]),
            lambda _, message: {resource_of(each): entries_of(each) for each in message.results},
        )
        found, failed = self._driver.ask(question, wanted, timeout)
        raise_first(failed)
        return {each: found[each] for each in wanted}

    def alter_configs(
        self, changes: Mapping[ConfigResource, Mapping[str, Any]], timeout: float | None, *, validate_only: bool
    ) -> None:
        checked_flag("validate_only", validate_only)
        wanted = {
            checked(each): [change(*item) for item in checked_dict(f"the configs of {each}", configs, CONFIGS).items()]
            for each, configs in checked_dict("changes", changes, CHANGES).items()
        }
        question: Question[ConfigResource, bool] = Question(
            who_knows,
            lambda some: IncrementalAlterConfigsRequest(
                [AlterConfigsResource(KINDS[each.kind], each.name, wanted[each]) for each in some], validate_only
            ),
            lambda _, message: {resource_of(each): outcome(each) or True for each in message.responses},
        )
        _, failed = self._driver.ask(question, wanted, timeout)
        raise_first(failed)

    def list_config_resources(self, kinds: Iterable[str], timeout: float | None) -> list[ConfigResource]:
        numbers = [KINDS[checked(ConfigResource(kind, "")).kind] for kind in checked_list("kinds", kinds, "['topic']")]
        question: Question[str, list[ConfigResource]] = Question(
            any_broker,
            lambda _: ListConfigResourcesRequest(numbers),
            lambda _, message: {
                "": error_for(message.error_code, "resources of these kinds are not listed there")
                if message.error_code
                else [
                    ConfigResource(NAMES[each.resource_type], each.resource_name) for each in message.config_resources
                ]
            },
        )
        found, failed = self._driver.ask(question, [""], timeout)
        raise_first(failed)
        return sorted(found[""])


def checked(resource: Any) -> ConfigResource:
    """A resource of a kind that there is; a pair will do."""
    if isinstance(resource, tuple) and len(resource) == 2 and isinstance(resource[0], str) and resource[0] in KINDS:
        return ConfigResource(resource[0], checked_text("the name of a resource", resource[1], "flights"))
    raise ValueError(
        f"{resource!r} has no configs: write ConfigResource(kind, name), the kind one of {', '.join(KINDS)}"
    )


def who_knows(
    driver: AdminApiDriver, keys: list[ConfigResource], deadline: Deadline
) -> dict[ConfigResource, Node | KafkaError]:
    """The broker itself for what is a broker's own, and for the rest whoever is least busy."""
    own = {key: int(key.name) for key in keys if key.kind in OF_ONE_BROKER and key.name.isdecimal()}
    nodes = each_broker(driver, list(own.values()), deadline)
    rest = any_broker(driver, [key for key in keys if key not in own], deadline)
    return {**{key: nodes[number] for key, number in own.items()}, **rest}


def change(name: str, value: Any) -> AlterableConfig:
    """One change as it travels; None gives a config back to its default."""
    checked_text("the name of a config", name, "retention.ms")
    if value is None:
        return AlterableConfig(name, DELETE, None)
    return AlterableConfig(name, SET, text_of(value))


def text_of(value: Any) -> str:
    """A value as Kafka writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def resource_of(answer: Any) -> ConfigResource:
    """Which resource an answer is about."""
    return ConfigResource(NAMES[answer.resource_type], answer.resource_name)


def outcome(answer: Any) -> KafkaError | None:
    """What went wrong with one resource."""
    if not answer.error_code:
        return None
    kind, name = resource_of(answer)
    there_is_none = answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return error_for(answer.error_code, answer.error_message or f"{'there is no ' * there_is_none}{kind} {name!r}")


def entries_of(answer: Any) -> KafkaError | dict[str, ConfigEntry]:
    """The configs of one resource, by name."""
    return outcome(answer) or {
        each.name: ConfigEntry(
            each.name, each.value, SOURCES.get(each.config_source, "UNKNOWN"), each.read_only, each.is_sensitive
        )
        for each in sorted(answer.configs, key=lambda each: each.name)
    }
