"""Describe and change configs of topics, brokers and groups, and list the resources that have some."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ottla.client.admin.admin_api_driver import (
    AdminApiDriver,
    AdminQuery,
    lookup_any_broker,
    lookup_each_broker,
    raise_first,
)
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
BROKER_KINDS = ("broker", "broker-logger")
"""Kinds of resources for which only the broker itself can answer."""


class ConfigCalls:
    """Implements the config methods of `Admin`, which documents them."""

    def __init__(self, driver: AdminApiDriver) -> None:
        self._driver = driver

    def describe_configs(
        self, resources: Iterable[ConfigResource], timeout: float | None
    ) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        wanted = [
            check_resource(each)
            for each in checked_list("resources", resources, "[ConfigResource('topic', 'flights')]")
        ]
        query: AdminQuery[ConfigResource, dict[str, ConfigEntry]] = AdminQuery(
            lookup_resource_broker,
            lambda resources_: DescribeConfigsRequest(
                [DescribeConfigsResource(KINDS[kind], name) for kind, name in resources_]
            ),
            lambda _, message: {parse_resource(each): parse_entries(each) for each in message.results},
        )
        found, failed = self._driver.run_query(query, wanted, timeout)
        raise_first(failed)
        return {each: found[each] for each in wanted}

    def alter_configs(
        self, changes: Mapping[ConfigResource, Mapping[str, Any]], timeout: float | None, *, validate_only: bool
    ) -> None:
        checked_flag("validate_only", validate_only)
        wanted = {
            check_resource(each): [
                encode_change(*item) for item in checked_dict(f"the configs of {each}", configs, CONFIGS).items()
            ]
            for each, configs in checked_dict("changes", changes, CHANGES).items()
        }
        query: AdminQuery[ConfigResource, bool] = AdminQuery(
            lookup_resource_broker,
            lambda resources_: IncrementalAlterConfigsRequest(
                [AlterConfigsResource(KINDS[each.kind], each.name, wanted[each]) for each in resources_], validate_only
            ),
            lambda _, message: {parse_resource(each): result_error(each) or True for each in message.responses},
        )
        _, failed = self._driver.run_query(query, wanted, timeout)
        raise_first(failed)

    def list_config_resources(self, kinds: Iterable[str], timeout: float | None) -> list[ConfigResource]:
        numbers = [
            KINDS[check_resource(ConfigResource(kind, "")).kind] for kind in checked_list("kinds", kinds, "['topic']")
        ]
        query: AdminQuery[str, list[ConfigResource]] = AdminQuery(
            lookup_any_broker,
            lambda _: ListConfigResourcesRequest(numbers),
            lambda _, message: {
                "": error_for(message.error_code, "the broker cannot list resources of these kinds")
                if message.error_code
                else [
                    ConfigResource(NAMES[each.resource_type], each.resource_name) for each in message.config_resources
                ]
            },
        )
        found, failed = self._driver.run_query(query, [""], timeout)
        raise_first(failed)
        return sorted(found[""])


def check_resource(resource: Any) -> ConfigResource:
    """Return the resource; a pair is accepted too. Raises ValueError if the kind is unknown."""
    if isinstance(resource, tuple) and len(resource) == 2 and isinstance(resource[0], str) and resource[0] in KINDS:
        return ConfigResource(resource[0], checked_text("the name of a resource", resource[1], "flights"))
    raise ValueError(
        f"{resource!r} is not a resource with configs: write ConfigResource(kind, name) with one of the kinds {', '.join(KINDS)}"
    )


def lookup_resource_broker(
    driver: AdminApiDriver, keys: list[ConfigResource], deadline: Deadline
) -> dict[ConfigResource, Node | KafkaError]:
    """Look up the broker itself for its own configs, and the least loaded broker for the others."""
    own = {key: int(key.name) for key in keys if key.kind in BROKER_KINDS and key.name.isdecimal()}
    nodes = lookup_each_broker(driver, list(own.values()), deadline)
    rest = lookup_any_broker(driver, [key for key in keys if key not in own], deadline)
    return {**{key: nodes[number] for key, number in own.items()}, **rest}


def encode_change(name: str, value: Any) -> AlterableConfig:
    """Return one change in the form of the protocol. None resets a config to its default."""
    checked_text("the name of a config", name, "retention.ms")
    if value is None:
        return AlterableConfig(name, DELETE, None)
    return AlterableConfig(name, SET, format_value(value))


def format_value(value: Any) -> str:
    """Return a value as Kafka writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def parse_resource(response: Any) -> ConfigResource:
    """Return the resource of a result."""
    return ConfigResource(NAMES[response.resource_type], response.resource_name)


def result_error(response: Any) -> KafkaError | None:
    """Return the error of one resource, or None."""
    if not response.error_code:
        return None
    kind, name = parse_resource(response)
    is_missing = response.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return error_for(response.error_code, response.error_message or f"{'there is no ' * is_missing}{kind} {name!r}")


def parse_entries(response: Any) -> KafkaError | dict[str, ConfigEntry]:
    """Return the configs of one resource by name, or its error."""
    return result_error(response) or {
        each.name: ConfigEntry(
            each.name, each.value, SOURCES.get(each.config_source, "UNKNOWN"), each.read_only, each.is_sensitive
        )
        for each in sorted(response.configs, key=lambda each: each.name)
    }
