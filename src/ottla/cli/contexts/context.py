"""`ottla context add | use | list | show | remove`: clusters by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from ottla.cli.contexts.choice import completed
from ottla.cli.contexts.contexts import NAME, ClusterContext, Contexts, contexts_file, read_contexts, write_contexts
from ottla.cli.contexts.settings import checked_address, checked_file, checked_settings
from ottla.cli.options import json_option, senseless
from ottla.cli.output import echo
from ottla.cli.tables import show as print_rows
from ottla.cli.verbs import Verbs

LIST = ("CURRENT", "NAME", "BOOTSTRAP-SERVERS", "COMMAND-CONFIG")
F = TypeVar("F", bound=Callable[..., Any])
SETTINGS = ("NAME", "SETTING", "VALUE")


@click.group(cls=Verbs)
def context() -> None:
    """Name clusters, and choose the one that commands speak to."""


def name_argument(*, required: bool = True) -> Callable[[F], F]:
    return click.argument("name", metavar="NAME", required=required, shell_complete=completed)


@context.command()
@click.argument("name", metavar="NAME")
@click.option("--bootstrap-server", metavar="HOST:PORT", required=True, help="A broker to start from.")
@click.option(
    "--command-config",
    metavar="FILE",
    type=click.Path(),
    help="A properties file with settings, such as how to log in.",
)
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="A setting; secrets as ${env:NAME} only.")
@click.option("--use", "at_once", is_flag=True, help="Make it the current one.")
@click.option("--replace", is_flag=True, help="In place of one that has the name.")
def add(
    name: str,
    bootstrap_server: str,
    command_config: str | None,
    settings: tuple[str, ...],
    at_once: bool,
    replace: bool,
) -> None:
    """Keep a cluster under NAME. The cluster is not asked."""
    if not NAME.fullmatch(name):
        raise senseless(f"{name!r} must be of letters, digits, dots, dashes and underscores")
    new = ClusterContext(
        name, checked_address(bootstrap_server), checked_file(command_config), checked_settings(settings)
    )
    file = contexts_file()
    known = read_contexts(file)
    if name in known.by_name and not replace:
        raise click.ClickException(f"there is a context {name!r} already; add --replace to have this one instead")
    kept = known.having(new)
    write_contexts(file, Contexts(kept.by_name, name) if at_once else kept)


@context.command()
@name_argument(required=False)
@click.option("--none", "nothing", is_flag=True, help="None of them any more.")
def use(name: str | None, nothing: bool) -> None:
    """Have commands speak to NAME where nothing else says where the cluster is."""
    if (name is None) != nothing:
        raise senseless("name a context, or say --none")
    file = contexts_file()
    known = read_contexts(file)
    if name is not None:
        known.named(name, "ottla context use")
    write_contexts(file, Contexts(known.by_name, name))


@context.command("list")
@json_option
def list_contexts(in_json: bool) -> None:
    """Print all contexts, and which is the current one."""
    known = read_contexts(contexts_file())
    rows = [
        (mark(known, each.name, in_json), each.name, each.bootstrap_servers, each.command_config)
        for each in known.by_name.values()
    ]
    if rows or in_json:
        print_rows(LIST, rows, in_json=in_json)
    else:
        echo("there are no contexts; make one with: ottla context add NAME --bootstrap-server HOST:PORT", err=True)


def mark(known: Contexts, name: str, in_json: bool) -> object:
    is_current = name == known.current
    return is_current if in_json else "*" if is_current else None


@context.command()
@name_argument(required=False)
@json_option
def show(name: str | None, in_json: bool) -> None:
    """Print what is kept under NAME; of the current context without one."""
    known = read_contexts(contexts_file())
    if name is None and known.current is None:
        raise click.ClickException("there is no current context; name one, or choose one with: ottla context use NAME")
    each = known.named(name or known.current or "", "ottla context show")
    pairs = {"bootstrap.servers": each.bootstrap_servers, "command.config": each.command_config, **each.settings}
    print_rows(SETTINGS, [(each.name, *pair) for pair in pairs.items() if pair[1] is not None], in_json=in_json)


@context.command()
@name_argument()
def remove(name: str) -> None:
    """Forget NAME. Files that it names stay."""
    file = contexts_file()
    known = read_contexts(file)
    known.named(name, "ottla context remove")
    write_contexts(file, known.without(name))
    if name == known.current:
        echo("it was the current one; there is none now", err=True)
