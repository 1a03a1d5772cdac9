"""Options that name the entity of a quota.

They are `--user alice --client-id app` and similar, or kafka-configs' `--entity-type users …`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from ottla.cli.options import usage_error

if TYPE_CHECKING:
    from ottla.client.admin import ClientQuotaEntity

F = TypeVar("F", bound=Callable[..., Any])
TYPES: Mapping[str, str] = {"users": "user", "clients": "client_id", "ips": "ip"}
"""Field names of `ClientQuotaEntity`, by kafka-configs' names."""
NO_ENTITY = "no entity given: expected --user NAME, --client-id ID, --ip ADDRESS, --user-defaults, --client-defaults or --ip-defaults"
OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option("--user", metavar="NAME", help="A user, by login name."),
    click.option("--user-defaults", is_flag=True, help="The default of users without own limits."),
    click.option("--client-id", "--client", metavar="ID", help="A client.id; with --user, only of this user."),
    click.option("--client-defaults", is_flag=True, help="The default of client ids without own limits."),
    click.option("--ip", metavar="ADDRESS", help="An IP address."),
    click.option("--ip-defaults", is_flag=True, help="The default of addresses without own limits."),
    click.option("--entity-type", "types", type=click.Choice(tuple(TYPES)), multiple=True, help="As in kafka-configs."),
    click.option(
        "--entity-name", "names", metavar="NAME", multiple=True, help="Name of each --entity-type, in the same order."
    ),
    click.option("--entity-default", "default", is_flag=True, help="The default of --entity-type."),
)


class EntitySelection(NamedTuple):
    """The entity that the options name, or all entities of some kinds."""

    entity: ClientQuotaEntity
    kinds: frozenset[str] = frozenset()
    """Kinds of which all entities are selected."""

    @property
    def is_unrestricted(self) -> bool:
        return not self.entity.format_parts()

    def includes(self, entity: ClientQuotaEntity) -> bool:
        """Return true if an entity has the given names and is of the selected kinds."""
        wanted = self.entity._asdict()
        has = entity._asdict()
        named = all(value is None or has[kind] == value for kind, value in wanted.items())
        return named and all(has[kind] is not None for kind in self.kinds)


def quota_entity_options(command: F) -> F:
    """Add the options to a command, which passes their values to `selected_entities`."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def selected_entities(given: Mapping[str, Any]) -> EntitySelection:
    """Return the entities that the options name; all entities without any option."""
    from ottla.client.admin.client_quota import DEFAULT, ClientQuotaEntity

    fields: dict[str, str | None] = {kind: given[kind] for kind in ("user", "client_id", "ip")}
    for kind, flag in (("user", "user_defaults"), ("client_id", "client_defaults"), ("ip", "ip_defaults")):
        if given[flag]:
            if fields[kind] is not None:
                raise usage_error(f"--{kind.replace('_', '-')} and --{flag.replace('_', '-')} exclude each other")
            fields[kind] = DEFAULT
    kinds = of_entity_types(given["types"], given["names"], default=given["default"], fields=fields)
    if fields["ip"] is not None and (fields["user"] is not None or fields["client_id"] is not None):
        raise usage_error("--ip excludes --user and --client-id")
    if "" in fields.values():
        raise usage_error("a name is empty: use --user-defaults, --client-defaults or --ip-defaults for the defaults")
    return EntitySelection(ClientQuotaEntity(**fields), kinds)


def of_entity_types(
    types: tuple[str, ...], names: tuple[str, ...], *, default: bool, fields: dict[str, str | None]
) -> frozenset[str]:
    """Set the names of `--entity-type` in `fields`; return the kinds of which all entities are selected."""
    from ottla.client.admin.client_quota import DEFAULT

    if len(set(types)) < len(types):
        raise usage_error("an --entity-type is given twice; give it once")
    if default and len(types) > 1:
        raise usage_error(
            "--entity-default is ambiguous with two --entity-type: use --user-defaults or --client-defaults"
        )
    chosen = (DEFAULT,) if default and not names else names
    if (default and names) or len(chosen) > len(types):
        raise usage_error("--entity-name and --entity-default need an --entity-type each")
    for kind, name in zip((TYPES[each] for each in types), chosen, strict=False):
        if fields[kind] is not None:
            raise usage_error(f"the {kind.replace('_', ' ')} is given twice: give it once")
        fields[kind] = name
    return frozenset(TYPES[each] for each in types[len(chosen) :])


def one_entity(given: Mapping[str, Any]) -> ClientQuotaEntity:
    """Return the entity of a change; raise a usage error unless exactly one is given."""
    found = selected_entities(given)
    if found.is_unrestricted or found.kinds:
        raise usage_error(NO_ENTITY)
    return found.entity
