"""`ottla configs describe | alter`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.config_changes import config_changes
from ottla.cli.entities import entity_options, named_entities, resources_of
from ottla.cli.near_names import nearly_named, nearly_set
from ottla.cli.options import bootstrap_server, json_option, properties_of, settings_option
from ottla.cli.output import echo
from ottla.cli.tables import aligned, as_json
from ottla.cli.topics import admin_at
from ottla.cli.verbs import Verbs
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
"""The sources of what somebody has set for an entity; all else it has from elsewhere."""
OF_ALL_BROKERS = ("DYNAMIC_DEFAULT_BROKER_CONFIG",)
"""The same of what holds for every broker that has nothing of its own."""


@click.group(cls=Verbs)
def configs() -> None:
    """Show and change the configs of topics, brokers and groups."""


@configs.command()
@bootstrap_server
@entity_options
@click.option("--all", "everything", is_flag=True, help="Defaults too, and what comes from elsewhere.")
@json_option
@settings_option("client")
def describe(
    bootstrap_server: str, everything: bool, in_json: bool, settings: tuple[str, ...], **entities: Any
) -> None:
    """Print the configs that are set, with --all every one.

    An --entity-type without a name means all of the kind.
    """
    named = named_entities(entities)
    with admin_at(bootstrap_server, settings) as admin, nearly_named(admin, [name for _, name in named if name]):
        found = admin.describe_configs(resources_of(admin, named))
    shown = {each: chosen(each, entries.values(), everything=everything) for each, entries in found.items()}
    if in_json:
        columns = ("TYPE", "NAME", *COLUMNS)
        echo(as_json(columns, [(*each, *row) for each, entries in shown.items() for row in rows_of(entries)]))
        return
    for each, entries in shown.items():
        echo(described(each, entries))


@configs.command()
@bootstrap_server
@entity_options
@click.option("--add-config", "added", metavar="KEY=VALUE,...", multiple=True, help="Configs to set; [a,b] is a list.")
@click.option("--add-config-file", "file", metavar="FILE", type=click.Path(), help="Configs to set, as properties.")
@click.option("--delete-config", "deleted", metavar="KEY,...", multiple=True, help="Configs to give back to defaults.")
@click.option("--validate-only", is_flag=True, help="Have it checked, and change nothing.")
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
    """Set configs, or give them back to their defaults; those that are not named stay as they are."""
    named = named_entities(entities)
    changes = config_changes(added, deleted, properties_of("--add-config-file", file))
    with admin_at(bootstrap_server, settings) as admin:
        wanted = dict.fromkeys(resources_of(admin, named), changes)
        with nearly_set(admin, wanted):
            admin.alter_configs(wanted, validate_only=validate_only)


def chosen(resource: ConfigResource, entries: Iterable[ConfigEntry], *, everything: bool) -> list[ConfigEntry]:
    """The entries to show, in the order of their names."""
    own = OF_ITSELF[resource.kind] if resource.name else OF_ALL_BROKERS
    return sorted(entry for entry in entries if everything or entry.source in own)


def rows_of(entries: Iterable[ConfigEntry]) -> list[tuple[str, str | None, str]]:
    return [(each.name, SENSITIVE if each.sensitive else each.value, each.source) for each in entries]


def described(resource: ConfigResource, entries: list[ConfigEntry]) -> str:
    """An entity as a headline and a table."""
    name = escape_controls(f"{resource.kind} {resource.name}") if resource.name else f"default of every {resource.kind}"
    if not entries:
        return f"{name}: nothing is set (--all shows defaults)\n"
    return f"{name}:\n{aligned(COLUMNS, rows_of(entries))}\n"
