"""`ottla users list | describe | add | alter | delete`: the SCRAM credentials of users."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ottla.cli.command_groups import CommandGroup
from ottla.cli.consent import confirm, yes_option
from ottla.cli.options import bootstrap_server, json_option, settings_option
from ottla.cli.security.passwords import PasswordSource, password_options
from ottla.cli.tables import show
from ottla.cli.topics import admin_at
from ottla.config import unknown

if TYPE_CHECKING:
    from ottla.client.admin import Admin

F = TypeVar("F", bound=Callable[..., Any])
COLUMNS = ("USER", "MECHANISM", "ITERATIONS")
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
DEFAULT_MECHANISM = "SCRAM-SHA-512"
FEWEST, MOST = 4096, 16384
"""The iteration counts that brokers accept."""
Credentials = Mapping[str, int]
"""The number of hash iterations by mechanism."""


@click.group(cls=CommandGroup)
def users() -> None:
    """Set, list and delete the SCRAM passwords of users."""


def mechanism_option(help_text: str) -> Callable[[F], F]:
    return click.option(
        "--mechanism",
        "mechanisms",
        type=click.Choice(MECHANISMS, case_sensitive=False),
        multiple=True,
        help=help_text,
    )


iterations_option = click.option(
    "--iterations",
    type=click.IntRange(FEWEST, MOST),
    help="Number of hash iterations.  [default: unchanged, 4096 for a new password]",
)


@users.command("list")
@bootstrap_server
@json_option
@settings_option("client")
def list_users(bootstrap_server: str, in_json: bool, settings: tuple[str, ...]) -> None:
    """Print all users with their mechanisms."""
    with admin_at(bootstrap_server, settings) as admin:
        show(COLUMNS, rows_of(admin.describe_user_scram_credentials()), in_json=in_json)


@users.command()
@click.argument("names", metavar="USER...", nargs=-1, required=True)
@bootstrap_server
@json_option
@settings_option("client")
def describe(names: tuple[str, ...], bootstrap_server: str, in_json: bool, settings: tuple[str, ...]) -> None:
    """Print the mechanisms of these users."""
    with admin_at(bootstrap_server, settings) as admin:
        show(COLUMNS, rows_of(admin.describe_user_scram_credentials(dict.fromkeys(names))), in_json=in_json)


@users.command()
@click.argument("name", metavar="USER")
@bootstrap_server
@mechanism_option(f"The mechanism; may be repeated.  [default: {DEFAULT_MECHANISM}]")
@iterations_option
@password_options
@settings_option("client")
def add(
    name: str,
    bootstrap_server: str,
    mechanisms: tuple[str, ...],
    iterations: int | None,
    settings: tuple[str, ...],
    **source: Any,
) -> None:
    """Add a SCRAM password for USER; it is prompted for. Brokers receive only its hash."""
    wanted = mechanisms or (DEFAULT_MECHANISM,)
    with admin_at(bootstrap_server, settings) as admin:
        had = admin.describe_user_scram_credentials().get(name, {})
        for mechanism in wanted:
            if mechanism in had:
                raise click.ClickException(
                    f"user {name!r} has a password for {mechanism} already; change it with: ottla users alter {name}"
                )
        set_passwords(admin, name, dict.fromkeys(wanted, iterations or FEWEST), PasswordSource(**source).read(name))


@users.command()
@click.argument("name", metavar="USER")
@bootstrap_server
@mechanism_option("The mechanism; may be repeated.  [default: all of the user]")
@iterations_option
@password_options
@settings_option("client")
def alter(
    name: str,
    bootstrap_server: str,
    mechanisms: tuple[str, ...],
    iterations: int | None,
    settings: tuple[str, ...],
    **source: Any,
) -> None:
    """Change the password of USER; it is prompted for. Existing connections stay open."""
    with admin_at(bootstrap_server, settings) as admin:
        had = credentials_of(admin, name, mechanisms)
        wanted = {mechanism: iterations or had[mechanism] for mechanism in mechanisms or had}
        set_passwords(admin, name, wanted, PasswordSource(**source).read(name))


@users.command()
@click.argument("name", metavar="USER")
@bootstrap_server
@mechanism_option("The mechanism; may be repeated.  [default: all]")
@yes_option
@settings_option("client")
def delete(
    name: str, bootstrap_server: str, mechanisms: tuple[str, ...], agreed: bool, settings: tuple[str, ...]
) -> None:
    """Delete the passwords of USER. Existing connections stay open."""
    from ottla.client.admin import UserScramCredentialDeletion

    with admin_at(bootstrap_server, settings) as admin:
        deleted = mechanisms or tuple(credentials_of(admin, name, ()))
        credentials_of(admin, name, deleted)
        confirm(f"Delete {name}'s passwords for {' and '.join(deleted)}?", agreed=agreed)
        for mechanism in deleted:
            admin.alter_user_scram_credentials([UserScramCredentialDeletion(name, mechanism)])


def credentials_of(admin: Admin, name: str, mechanisms: Iterable[str]) -> Credentials:
    """Return the credentials of a user; raise ClickException if the user or one of the mechanisms is missing."""
    known = admin.describe_user_scram_credentials()
    if name not in known:
        raise click.ClickException(f"{unknown('user', name, known)}; add one with: ottla users add {name}")
    for mechanism in mechanisms:
        if mechanism not in known[name]:
            raise click.ClickException(
                f"user {name!r} has no password for {mechanism}, only for {', '.join(known[name])}"
            )
    return known[name]


def set_passwords(admin: Admin, name: str, wanted: Credentials, password: str) -> None:
    """Set the passwords one after the other, since a request may contain each user only once."""
    from ottla.client.admin import UserScramCredentialUpsertion

    for mechanism, iterations in wanted.items():
        admin.alter_user_scram_credentials([UserScramCredentialUpsertion(name, password, mechanism, iterations)])


def rows_of(found: Mapping[str, Credentials]) -> list[tuple[str, str, int]]:
    return [(name, *each) for name, credentials in sorted(found.items()) for each in sorted(credentials.items())]
