"""`ottla context add | use | list | show | remove`: clusters by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from ottla.cli.command_groups import CommandGroup
from ottla.cli.contexts.choice import complete_names
from ottla.cli.contexts.contexts import NAME, ClusterContext, Contexts, contexts_file, read_contexts, write_contexts
from ottla.cli.contexts.settings import checked_address, checked_file, checked_settings
from ottla.cli.options import json_option, usage_error
from ottla.cli.output import echo
from ottla.cli.tables import show as print_rows

LIST = ("CURRENT", "NAME", "BOOTSTRAP-SERVERS", "COMMAND-CONFIG")
F = TypeVar("F", bound=Callable[..., Any])
SETTINGS = ("NAME", "SETTING", "VALUE")


@click.group(cls=CommandGroup)
def context() -> None:
    """Name clusters, and select the one that commands use."""


def name_argument(*, required: bool = True) -> Callable[[F], F]:
    return click.argument("name", metavar="NAME", required=required, shell_complete=complete_names)


@context.command()
@click.argument("name", metavar="NAME")
@click.option("-b", "--bootstrap-server", metavar="HOST:PORT", required=True, help="A broker to start from.")
@click.option(
    "--command-config",
    metavar="FILE",
    type=click.Path(),
    help="A properties file with settings, such as the login.",
)
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="A setting; secrets only as ${env:NAME}.")
@click.option("--use", "at_once", is_flag=True, help="Make it the current context.")
@click.option("--replace", is_flag=True, help="Replace an existing context of this name.")
def add(
    name: str,
    bootstrap_server: str,
    command_config: str | None,
    settings: tuple[str, ...],
    at_once: bool,
    replace: bool,
) -> None:
    """Store a cluster under NAME. The cluster is not contacted."""
    if not NAME.fullmatch(name):
        raise usage_error(f"invalid context name {name!r}: expected letters, digits, dots, dashes and underscores")
    new = ClusterContext(
        name, checked_address(bootstrap_server), checked_file(command_config), checked_settings(settings)
    )
    file = contexts_file()
    known = read_contexts(file)
    if name in known.by_name and not replace:
        raise click.ClickException(f"context {name!r} exists already: add --replace to replace it")
    kept = known.with_context(new)
    write_contexts(file, Contexts(kept.by_name, name) if at_once else kept)


@context.command()
@name_argument(required=False)
@click.option("--none", "nothing", is_flag=True, help="Use no context.")
def use(name: str | None, nothing: bool) -> None:
    """Make NAME the cluster of commands that give no address."""
    if (name is None) != nothing:
        raise usage_error("expected the name of a context, or --none")
    file = contexts_file()
    known = read_contexts(file)
    if name is not None:
        known.get(name, "ottla context use")
    write_contexts(file, Contexts(known.by_name, name))


@context.command("list")
@json_option
def list_contexts(in_json: bool) -> None:
    """Print all contexts and mark the current one."""
    known = read_contexts(contexts_file())
    rows = [
        (mark_current(known, each.name, in_json), each.name, each.bootstrap_servers, each.command_config)
        for each in known.by_name.values()
    ]
    if rows or in_json:
        print_rows(LIST, rows, in_json=in_json)
    else:
        echo("there are no contexts; add one with: ottla context add NAME --bootstrap-server HOST:PORT", err=True)


def mark_current(known: Contexts, name: str, in_json: bool) -> object:
    is_current = name == known.current
    return is_current if in_json else "*" if is_current else None


@context.command()
@name_argument(required=False)
@json_option
def show(name: str | None, in_json: bool) -> None:
    """Print the settings of NAME, or of the current context."""
    known = read_contexts(contexts_file())
    if name is None and known.current is None:
        raise click.ClickException(
            "there is no current context: give a name, or select one with: ottla context use NAME"
        )
    each = known.get(name or known.current or "", "ottla context show")
    pairs = {"bootstrap.servers": each.bootstrap_servers, "command.config": each.command_config, **each.settings}
    print_rows(SETTINGS, [(each.name, *pair) for pair in pairs.items() if pair[1] is not None], in_json=in_json)


@context.command()
@name_argument()
def remove(name: str) -> None:
    """Delete the context NAME. The files that it refers to are kept."""
    file = contexts_file()
    known = read_contexts(file)
    known.get(name, "ottla context remove")
    write_contexts(file, known.without(name))
    if name == known.current:
        echo("it was the current context; there is none now", err=True)
