"""`ottla configs describe | alter`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.command_groups import CommandGroup
from ottla.cli.config_changes import config_changes
from ottla.cli.entities import entity_options, named_entities, resources_of
from ottla.cli.near_names import reject_unknown_configs, suggest_similar_names
from ottla.cli.options import bootstrap_server, json_option, properties_of, settings_option
from ottla.cli.output import echo
from ottla.cli.tables import as_json, format_table
from ottla.cli.topics import admin_at
from ottla.escaping import escape_controls

if TYPE_CHECKING:
    from ottla.client.admin import ConfigEntry, ConfigResource

COLUMNS = ("CONFIG", "VALUE", "SOURCE")
SENSITIVE = "(hidden)"
OF_ITSELF: Mapping[str, tuple[str, ...]] = {
    "topic": ("DYNAMIC_TOPIC_CONFIG",),
    "broker": ("DYNAMIC_BROKER_CONFIG",),
    "broker-logger": ("DYNAMIC_BROKER_LOGGER_CONFIG",),
    "client-metrics": ("DYNAMIC_CLIENT_METRICS_CONFIG",),
    "group": ("DYNAMIC_GROUP_CONFIG",),
}
"""The config sources that are set for the entity itself; all other values are inherited or defaults."""
OF_ALL_BROKERS = ("DYNAMIC_DEFAULT_BROKER_CONFIG",)
"""The config sources that are set for all brokers."""


@click.group(cls=CommandGroup)
def configs() -> None:
    """Show and change the configs of topics, brokers and groups."""


@configs.command()
@bootstrap_server
@entity_options
@click.option("--all", "everything", is_flag=True, help="Show defaults and inherited values too.")
@json_option
@settings_option("client")
def describe(
    bootstrap_server: str, everything: bool, in_json: bool, settings: tuple[str, ...], **entities: Any
) -> None:
    """Print the configs that are set; with --all also defaults and inherited values.

    An --entity-type without a name selects all entities of the type.
    """
    named = named_entities(entities)
    with (
        admin_at(bootstrap_server, settings) as admin,
        suggest_similar_names(admin, [name for _, name in named if name]),
    ):
        found = admin.describe_configs(resources_of(admin, named))
    shown = {each: choose_entries(each, entries.values(), everything=everything) for each, entries in found.items()}
    if in_json:
        columns = ("TYPE", "NAME", *COLUMNS)
        echo(as_json(columns, [(*each, *row) for each, entries in shown.items() for row in rows_of(entries)]))
        return
    for each, entries in shown.items():
        echo(describe_entity(each, entries))


@configs.command()
@bootstrap_server
@entity_options
@click.option("--add-config", "added", metavar="KEY=VALUE,...", multiple=True, help="Configs to set; [a,b] is a list.")
@click.option("--add-config-file", "file", metavar="FILE", type=click.Path(), help="Configs to set, as properties.")
@click.option(
    "--delete-config", "deleted", metavar="KEY,...", multiple=True, help="Configs to reset to their defaults."
)
@click.option("--validate-only", is_flag=True, help="Only validate the changes.")
@settings_option("client")
def alter(
    bootstrap_server: str,
    added: tuple[str, ...],
    file: str | None,
    deleted: tuple[str, ...],
    validate_only: bool,
    settings: tuple[str, ...],
    **entities: Any,
) -> None:
    """Set configs, or reset them to their defaults. Other configs do not change."""
    named = named_entities(entities)
    changes = config_changes(added, deleted, properties_of("--add-config-file", file))
    with admin_at(bootstrap_server, settings) as admin:
        wanted = dict.fromkeys(resources_of(admin, named), changes)
        with reject_unknown_configs(admin, wanted):
            admin.alter_configs(wanted, validate_only=validate_only)


def choose_entries(resource: ConfigResource, entries: Iterable[ConfigEntry], *, everything: bool) -> list[ConfigEntry]:
    """Return the entries to show, sorted by name."""
    own = OF_ITSELF[resource.kind] if resource.name else OF_ALL_BROKERS
    return sorted(entry for entry in entries if everything or entry.source in own)


def rows_of(entries: Iterable[ConfigEntry]) -> list[tuple[str, str | None, str]]:
    return [(each.name, SENSITIVE if each.sensitive else each.value, each.source) for each in entries]


def describe_entity(resource: ConfigResource, entries: list[ConfigEntry]) -> str:
    """Return the table of an entity's configs under a headline."""
    name = escape_controls(f"{resource.kind} {resource.name}") if resource.name else f"default of every {resource.kind}"
    if not entries:
        return f"{name}: nothing is set (--all shows defaults)\n"
    return f"{name}:\n{format_table(COLUMNS, rows_of(entries))}\n"
