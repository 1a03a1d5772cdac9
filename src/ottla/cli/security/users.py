"""`ottla users list | describe | add | alter | delete`: who may log in by SCRAM."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ottla.cli.consent import ask, yes_option
from ottla.cli.options import bootstrap_server, json_option, settings_option
from ottla.cli.security.passwords import PasswordSource, password_options
from ottla.cli.tables import show
from ottla.cli.topics import admin_at
from ottla.cli.verbs import Verbs
from ottla.config import unknown

if TYPE_CHECKING:
    from ottla.client.admin import Admin

F = TypeVar("F", bound=Callable[..., Any])
COLUMNS = ("USER", "MECHANISM", "ITERATIONS")
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
DEFAULT_MECHANISM = "SCRAM-SHA-512"
FEWEST, MOST = 4096, 16384
"""Iterations that brokers take."""
Credentials = Mapping[str, int]
"""How often the password is hashed, by mechanism."""


@click.group(cls=Verbs)
def users() -> None:
    """Give users of SCRAM passwords, show who has one, and take them away."""


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
    help="How often the password is hashed.  [default: as it was, at first 4096]",
)


@users.command("list")
@bootstrap_server
@json_option
@settings_option("client")
def list_users(bootstrap_server: str, in_json: bool, settings: tuple[str, ...]) -> None:
    """Print all users, with the mechanisms by which each may log in."""
    with admin_at(bootstrap_server, settings) as admin:
        show(COLUMNS, rows_of(admin.describe_user_scram_credentials()), in_json=in_json)


@users.command()
@click.argument("names", metavar="USER...", nargs=-1, required=True)
@bootstrap_server
@json_option
@settings_option("client")
def describe(names: tuple[str, ...], bootstrap_server: str, in_json: bool, settings: tuple[str, ...]) -> None:
    """Print by which mechanisms these users may log in."""
    with admin_at(bootstrap_server, settings) as admin:
        show(COLUMNS, rows_of(admin.describe_user_scram_credentials(dict.fromkeys(names))), in_json=in_json)


@users.command()
@click.argument("name", metavar="USER")
@bootstrap_server
@mechanism_option(f"By which to log in; may be given twice.  [default: {DEFAULT_MECHANISM}]")
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
    """Let USER log in by a password, which is asked for. The brokers are told its hash."""
    wanted = mechanisms or (DEFAULT_MECHANISM,)
    with admin_at(bootstrap_server, settings) as admin:
        had = admin.describe_user_scram_credentials().get(name, {})
        for mechanism in wanted:
            if mechanism in had:
                raise click.ClickException(
                    f"user {name!r} has a password for {mechanism} already; change it with: ottla users alter {name}"
                )
        give(admin, name, dict.fromkeys(wanted, iterations or FEWEST), PasswordSource(**source).read(name))


@users.command()
@click.argument("name", metavar="USER")
@bootstrap_server
@mechanism_option("Which password; may be given twice.  [default: of all that the user has]")
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
    """Give USER another password, which is asked for. Who is logged in stays so."""
    with admin_at(bootstrap_server, settings) as admin:
        had = credentials_of(admin, name, mechanisms)
        wanted = {mechanism: iterations or had[mechanism] for mechanism in mechanisms or had}
        give(admin, name, wanted, PasswordSource(**source).read(name))


@users.command()
@click.argument("name", metavar="USER")
@bootstrap_server
@mechanism_option("Which password; may be given twice.  [default: all]")
@yes_option
@settings_option("client")
def delete(
    name: str, bootstrap_server: str, mechanisms: tuple[str, ...], agreed: bool, settings: tuple[str, ...]
) -> None:
    """Let USER log in no more. Who is logged in stays so."""
    from ottla.client.admin import UserScramCredentialDeletion

    with admin_at(bootstrap_server, settings) as admin:
        gone = mechanisms or tuple(credentials_of(admin, name, ()))
        credentials_of(admin, name, gone)
        ask(f"Shall {name} log in by {' and '.join(gone)} no more?", agreed=agreed)
        for mechanism in gone:
            admin.alter_user_scram_credentials([UserScramCredentialDeletion(name, mechanism)])


def credentials_of(admin: Admin, name: str, mechanisms: Iterable[str]) -> Credentials:
    """What a user has, who must be there and have these."""
    known = admin.describe_user_scram_credentials()
    if name not in known:
        raise click.ClickException(f"{unknown('user', name, known)}; add one with: ottla users add {name}")
    for mechanism in mechanisms:
        if mechanism not in known[name]:
            raise click.ClickException(
                f"user {name!r} has no password for {mechanism}, only for {', '.join(known[name])}"
            )
    return known[name]


def give(admin: Admin, name: str, wanted: Credentials, password: str) -> None:
    """One after the other: brokers take no user twice in a request."""
    from ottla.client.admin import UserScramCredentialUpsertion

    for mechanism, iterations in wanted.items():
        admin.alter_user_scram_credentials([UserScramCredentialUpsertion(name, password, mechanism, iterations)])


def rows_of(found: Mapping[str, Credentials]) -> list[tuple[str, str, int]]:
    return [(name, *each) for name, credentials in sorted(found.items()) for each in sorted(credentials.items())]
