"""Options that name an entity with configs.

They are `--topic orders` and similar, or kafka-configs' `--entity-type topics --entity-name orders`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ottla.cli.options import usage_error

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
"""Admin's names of the entity types, by kafka-configs' names."""
SHORT = ("topic", "broker", "group", "client-metrics")
"""Types that have an option of their own."""
NO_ENTITY = "no entity given: expected --topic NAME, --broker ID, --group NAME, --client-metrics NAME, --broker-defaults, or --entity-type"
OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option("-t", "--topic", "topic", metavar="NAME", multiple=True, help="A topic."),
    click.option("--broker", "broker", metavar="ID", multiple=True, help="A broker, by its number."),
    click.option("--broker-defaults", is_flag=True, help="The defaults of all brokers."),
    click.option("-g", "--group", "group", metavar="NAME", multiple=True, help="A consumer group."),
    click.option("--client-metrics", metavar="NAME", multiple=True, help="A subscription to client metrics."),
    click.option("--entity-type", type=click.Choice(tuple(TYPES)), help="As in kafka-configs, with --entity-name."),
    click.option("--entity-name", "entity_names", metavar="NAME", multiple=True, help="A name of the --entity-type."),
    click.option("--entity-default", is_flag=True, help="The default of --entity-type brokers."),
)


def entity_options(command: F) -> F:
    """Add all options to a command, which passes their values to `named_entities`."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def named_entities(given: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    """Return kind and name of each entity; the name None selects all entities of the kind."""
    named: list[tuple[str, str | None]] = [(kind, name) for kind in SHORT for name in given[kind.replace("-", "_")]]
    if given["broker_defaults"]:
        named.append(("broker", ""))
    named += of_entity_type(given["entity_type"], given["entity_names"], default=given["entity_default"])
    if not named:
        raise usage_error(NO_ENTITY)
    for kind, name in named:
        if kind.startswith("broker") and name and not name.isdecimal():
            raise usage_error(f"invalid broker {name!r}: expected a number, as shown by ottla cluster")
    return list(dict.fromkeys(named))


def of_entity_type(entity_type: str | None, names: Sequence[str], *, default: bool) -> list[tuple[str, str | None]]:
    """Return the entities of `--entity-type`, `--entity-name` and `--entity-default`."""
    if entity_type is None:
        if names or default:
            raise usage_error("--entity-name and --entity-default need --entity-type")
        return []
    if default and (names or entity_type != "brokers"):
        raise usage_error("--entity-default is for --entity-type brokers, without --entity-name")
    if default:
        return [("broker", "")]
    return [(TYPES[entity_type], name) for name in names or (None,)]


def resources_of(admin: Admin, entities: Sequence[tuple[str, str | None]]) -> list[ConfigResource]:
    """Return the entities as ConfigResource; the names of a whole kind are requested from the cluster."""
    from ottla.client.admin import ConfigResource

    found: list[ConfigResource] = []
    for kind, name in entities:
        names = all_of(admin, kind) if name is None else [name]
        found += [ConfigResource(kind, each) for each in names]
    return found


def all_of(admin: Admin, kind: str) -> list[str]:
    """Return all names of a kind; of groups and client metrics only those that have configs."""
    if kind == "topic":
        return list(admin.list_topics())
    if kind.startswith("broker"):
        return [str(node.node_id) for node in admin.describe_cluster().nodes]
    return [each.name for each in admin.list_config_resources([kind])]
