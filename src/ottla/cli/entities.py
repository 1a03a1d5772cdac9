"""Options that name what has configs: `--topic orders`, or as kafka-configs has it `--entity-type topics --entity-name orders`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ottla.cli.options import senseless

if TYPE_CHECKING:
    from ottla.client.admin import Admin, ConfigResource

F = TypeVar("F", bound=Callable[..., Any])

TYPES: Mapping[str, str] = {
    "topics": "topic",
    "brokers": "broker",
    "broker-loggers": "broker-logger",
    "groups": "group",
    "client-metrics": "client-metrics",
}
"""What kafka-configs calls the types of entities, and what `Admin` calls them."""
SHORT = ("topic", "broker", "group", "client-metrics")
"""Types that have an option of their own."""
NOBODY = "say whose configs: --topic NAME, --broker ID, --group NAME, --client-metrics NAME, --broker-defaults, or --entity-type"
OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option("--topic", "topic", metavar="NAME", multiple=True, help="A topic."),
    click.option("--broker", "broker", metavar="ID", multiple=True, help="A broker, by its number."),
    click.option("--broker-defaults", is_flag=True, help="What holds for every broker that has nothing of its own."),
    click.option("--group", "group", metavar="NAME", multiple=True, help="A consumer group."),
    click.option("--client-metrics", metavar="NAME", multiple=True, help="A subscription to what clients push."),
    click.option("--entity-type", type=click.Choice(tuple(TYPES)), help="As in kafka-configs, with --entity-name."),
    click.option("--entity-name", "entity_names", metavar="NAME", multiple=True, help="Which of --entity-type."),
    click.option("--entity-default", is_flag=True, help="The default of --entity-type brokers."),
)


def entity_options(command: F) -> F:
    """All of them; the command takes them as keywords and hands them to `named_entities`."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def named_entities(given: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    """What the options name, as kind and name; without a name it is every one of its kind."""
    named: list[tuple[str, str | None]] = [(kind, name) for kind in SHORT for name in given[kind.replace("-", "_")]]
    if given["broker_defaults"]:
        named.append(("broker", ""))
    named += of_entity_type(given["entity_type"], given["entity_names"], default=given["entity_default"])
    if not named:
        raise senseless(NOBODY)
    for kind, name in named:
        if kind.startswith("broker") and name and not name.isdecimal():
            raise senseless(f"{name!r} is no broker: brokers are named by their numbers, as ottla cluster shows them")
    return list(dict.fromkeys(named))


def of_entity_type(entity_type: str | None, names: Sequence[str], *, default: bool) -> list[tuple[str, str | None]]:
    """What `--entity-type` and its companions name."""
    if entity_type is None:
        if names or default:
            raise senseless("--entity-name and --entity-default need --entity-type")
        return []
    if default and (names or entity_type != "brokers"):
        raise senseless("--entity-default is for --entity-type brokers, without --entity-name")
    if default:
        return [("broker", "")]
    return [(TYPES[entity_type], name) for name in names or (None,)]


def resources_of(admin: Admin, entities: Sequence[tuple[str, str | None]]) -> list[ConfigResource]:
    """The entities as `Admin` takes them; where all of a kind are meant the cluster is asked which there are."""
    from ottla.client.admin import ConfigResource

    found: list[ConfigResource] = []
    for kind, name in entities:
        names = all_of(admin, kind) if name is None else [name]
        found += [ConfigResource(kind, each) for each in names]
    return found


def all_of(admin: Admin, kind: str) -> list[str]:
    """The names of all that are of a kind; of groups and client metrics those that have configs."""
    if kind == "topic":
        return list(admin.list_topics())
    if kind.startswith("broker"):
        return [str(node.node_id) for node in admin.describe_cluster().nodes]
    return [each.name for each in admin.list_config_resources([kind])]
