"""Options that name who has limits: `--user alice --client-id app`, or in the words of kafka-configs `--entity-type users …`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from ottla.cli.options import senseless

if TYPE_CHECKING:
    from ottla.client.admin import ClientQuotaEntity

F = TypeVar("F", bound=Callable[..., Any])
TYPES: Mapping[str, str] = {"users": "user", "clients": "client_id", "ips": "ip"}
"""What kafka-configs calls the kinds, and what `ClientQuotaEntity` calls them."""
NOBODY = (
    "say whose limits: --user NAME, --client-id ID, --ip ADDRESS, --user-defaults, --client-defaults or --ip-defaults"
)
OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option("--user", metavar="NAME", help="A user, by whom it logs in as."),
    click.option("--user-defaults", is_flag=True, help="Each user who has no limits of its own."),
    click.option("--client-id", "--client", metavar="ID", help="A client.id; with a user only that of this user."),
    click.option("--client-defaults", is_flag=True, help="Each client.id that has no limits of its own."),
    click.option("--ip", metavar="ADDRESS", help="An address."),
    click.option("--ip-defaults", is_flag=True, help="Each address that has no limits of its own."),
    click.option("--entity-type", "types", type=click.Choice(tuple(TYPES)), multiple=True, help="As in kafka-configs."),
    click.option("--entity-name", "names", metavar="NAME", multiple=True, help="Which of --entity-type, in its order."),
    click.option("--entity-default", "default", is_flag=True, help="The default of --entity-type."),
)


class Whose(NamedTuple):
    """Whom options name: one entity, or every one of some kinds."""

    entity: ClientQuotaEntity
    kinds: frozenset[str] = frozenset()
    """Kinds of which every one is meant."""

    @property
    def is_everybody(self) -> bool:
        return not self.entity.parts()

    def means(self, entity: ClientQuotaEntity) -> bool:
        """Whether an entity has what is named, and is of the kinds of which all are meant."""
        wanted = self.entity._asdict()
        has = entity._asdict()
        named = all(value is None or has[kind] == value for kind, value in wanted.items())
        return named and all(has[kind] is not None for kind in self.kinds)


def quota_entity_options(command: F) -> F:
    """All of them; the command takes them as keywords and hands them to `whose`."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def whose(given: Mapping[str, Any]) -> Whose:
    """Whom the options name; nobody in particular where there are none."""
    from ottla.client.admin.client_quota import DEFAULT, ClientQuotaEntity

    fields: dict[str, str | None] = {kind: given[kind] for kind in ("user", "client_id", "ip")}
    for kind, flag in (("user", "user_defaults"), ("client_id", "client_defaults"), ("ip", "ip_defaults")):
        if given[flag]:
            if fields[kind] is not None:
                raise senseless(f"--{kind.replace('_', '-')} and --{flag.replace('_', '-')} exclude each other")
            fields[kind] = DEFAULT
    kinds = of_entity_types(given["types"], given["names"], default=given["default"], fields=fields)
    if fields["ip"] is not None and (fields["user"] is not None or fields["client_id"] is not None):
        raise senseless("an address has limits by itself: leave out the user and the client id")
    if "" in fields.values():
        raise senseless("a name is empty; the limits of everybody else are those of --user-defaults and its like")
    return Whose(ClientQuotaEntity(**fields), kinds)


def of_entity_types(
    types: tuple[str, ...], names: tuple[str, ...], *, default: bool, fields: dict[str, str | None]
) -> frozenset[str]:
    """Put what `--entity-type` and its companions name into `fields`; the kinds of which all are meant."""
    from ottla.client.admin.client_quota import DEFAULT

    if len(set(types)) < len(types):
        raise senseless("an --entity-type is given twice; give it once")
    if default and len(types) > 1:
        raise senseless("of two --entity-type it is not clear whose default: write --user-defaults, --client-defaults")
    chosen = (DEFAULT,) if default and not names else names
    if (default and names) or len(chosen) > len(types):
        raise senseless("--entity-name and --entity-default need an --entity-type each")
    for kind, name in zip((TYPES[each] for each in types), chosen, strict=False):
        if fields[kind] is not None:
            raise senseless(f"the {kind.replace('_', ' ')} is named twice; name it once")
        fields[kind] = name
    return frozenset(TYPES[each] for each in types[len(chosen) :])


def one_entity(given: Mapping[str, Any]) -> ClientQuotaEntity:
    """Whom a change is for."""
    found = whose(given)
    if found.is_everybody or found.kinds:
        raise senseless(NOBODY)
    return found.entity
