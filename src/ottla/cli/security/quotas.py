"""`ottla quotas describe | alter | delete`: limits of users, client ids and addresses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.command_groups import CommandGroup
from ottla.cli.config_changes import config_changes
from ottla.cli.consent import confirm, yes_option
from ottla.cli.options import bootstrap_server, json_option, settings_option, usage_error
from ottla.cli.output import echo
from ottla.cli.security.quota_entities import one_entity, quota_entity_options, selected_entities
from ottla.cli.tables import show
from ottla.cli.topics import admin_at
from ottla.config import unknown
from ottla.escaping import escape_controls

if TYPE_CHECKING:
    from ottla.client.admin import ClientQuotaEntity

COLUMNS = ("USER", "CLIENT-ID", "IP", "QUOTA", "VALUE")
OF_CLIENTS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
OF_ADDRESSES = ("connection_creation_rate",)


@click.group(cls=CommandGroup)
def quotas() -> None:
    """Show and change the quotas of users, client ids and addresses."""


@quotas.command()
@bootstrap_server
@quota_entity_options
@json_option
@settings_option("client")
def describe(bootstrap_server: str, in_json: bool, settings: tuple[str, ...], **given: Any) -> None:
    """Print all limits, or those of the given entity; an --entity-type without a name selects all of its kind."""
    wanted = selected_entities(given)
    with admin_at(bootstrap_server, settings) as admin:
        found = admin.describe_client_quotas(None if wanted.is_unrestricted or wanted.kinds else wanted.entity)
    show(COLUMNS, rows_of({each: limits for each, limits in found.items() if wanted.includes(each)}), in_json=in_json)


@quotas.command()
@bootstrap_server
@quota_entity_options
@click.option(
    "--add-config", "added", metavar="KEY=VALUE,...", multiple=True, help="Limits, such as producer_byte_rate."
)
@click.option("--delete-config", "deleted", metavar="KEY,...", multiple=True, help="Limits to remove.")
@click.option("--validate-only", is_flag=True, help="Only validate the changes.")
@settings_option("client")
def alter(
    bootstrap_server: str,
    added: tuple[str, ...],
    deleted: tuple[str, ...],
    validate_only: bool,
    settings: tuple[str, ...],
    **given: Any,
) -> None:
    """Set or remove limits of an entity. Other limits do not change.

     producer_byte_rate and consumer_byte_rate are in bytes per second, request_percentage is a share of one broker
    thread, controller_mutation_rate is in partitions per second; addresses have connection_creation_rate.
    """
    entity = one_entity(given)
    changes = limits_of(entity, config_changes(added, deleted, {}))
    with admin_at(bootstrap_server, settings) as admin:
        admin.alter_client_quotas({entity: changes}, validate_only=validate_only)


@quotas.command()
@bootstrap_server
@quota_entity_options
@yes_option
@settings_option("client")
def delete(bootstrap_server: str, agreed: bool, settings: tuple[str, ...], **given: Any) -> None:
    """Remove all limits of an entity."""
    entity = one_entity(given)
    with admin_at(bootstrap_server, settings) as admin:
        found = admin.describe_client_quotas(entity).get(entity, {})
        if not found:
            echo(f"nothing to remove: {escape_controls(name_of(entity))} has no own limits", err=True)
            return
        confirm(f"Remove {', '.join(sorted(found))} of {name_of(entity)}?", agreed=agreed)
        admin.alter_client_quotas({entity: dict.fromkeys(found)})


def limits_of(entity: ClientQuotaEntity, changes: Mapping[str, str | None]) -> dict[str, float | None]:
    """Return the changes as numbers; raise a usage error for an unknown limit."""
    known = OF_CLIENTS if entity.ip is None else OF_ADDRESSES
    for key in changes:
        if key not in known:
            message = unknown("quota", key, known)
            raise usage_error(message if message.endswith("?") else f"{message}; expected {', '.join(known)}")
    return {key: None if value is None else number_of(key, value) for key, value in changes.items()}


def number_of(key: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number <= 0:
        raise usage_error(
            f"--add-config {key}={text}: expected a number above 0; --delete-config {key} removes the limit"
        )
    return number


def rows_of(found: Mapping[ClientQuotaEntity, Mapping[str, float]]) -> list[tuple[Any, ...]]:
    """Return one row per limit; whole numbers as integers."""
    return [
        (each.user, each.client_id, each.ip, key, int(value) if value.is_integer() else value)
        for each, limits in sorted(found.items(), key=lambda item: tuple(part or "" for part in item[0]))
        for key, value in sorted(limits.items())
    ]


def name_of(entity: ClientQuotaEntity) -> str:
    """Return the entity in words."""
    parts = {"user": entity.user, "client id": entity.client_id, "address": entity.ip}
    return ", ".join(f"{kind} {name}" for kind, name in parts.items() if name is not None)
