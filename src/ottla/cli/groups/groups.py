"""`ottla groups list | describe | watch | reset-offsets | delete-offsets | delete`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.consent import ask_at_terminal, yes_option
from ottla.cli.groups import rows as rows_of
from ottla.cli.groups.kinds import STATES, TOOLS, TYPES, kinds_told, of_consumers
from ottla.cli.groups.positions import committed_and_ends
from ottla.cli.groups.reset import reset_offsets
from ottla.cli.groups.watch import watch
from ottla.cli.options import bootstrap_server, chosen_partitions, json_option, known_name, senseless, settings_option
from ottla.cli.output import echo
from ottla.cli.tables import aligned, show
from ottla.cli.topics import admin_at
from ottla.cli.verbs import Verbs
from ottla.escaping import escape_controls

if TYPE_CHECKING:
    from ottla.client.admin import Admin, ConsumerGroupDescription
    from ottla.model import TopicPartition

LOST = ("GROUP", "COMMITTED PARTITIONS")
LOST_OFFSETS = ("TOPIC", "PARTITION", "COMMITTED OFFSET")
REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")


@click.group(cls=Verbs)
def groups() -> None:
    """List, describe and watch consumer groups, and move their offsets."""


@groups.command("list")
@bootstrap_server
@click.option(
    "--state",
    "states",
    metavar="STATE",
    multiple=True,
    help=f"Only groups in this state: {', '.join(STATES[:-1])} or {STATES[-1]}.",
)
@click.option(
    "--type",
    "types",
    metavar="TYPE",
    multiple=True,
    help="Only groups of this type: classic, consumer, share or streams.",
)
@click.option("--verbose", is_flag=True, help="With type and state.")
@json_option
@settings_option("client")
def list_groups(
    bootstrap_server: str,
    states: tuple[str, ...],
    types: tuple[str, ...],
    verbose: bool,
    in_json: bool,
    settings: tuple[str, ...],
) -> None:
    """Print the names of all consumer groups, one a line; with --type also of those that are not consumers'."""
    states = tuple(known_name("state", each, STATES) for each in states)
    types = tuple(known_name("type", each, TYPES) for each in types)
    with admin_at(bootstrap_server, settings) as admin:
        found = admin.list_groups(states=states, types=types)
    if not TOOLS.keys() & {each.lower() for each in types}:
        found = of_consumers(found)
    if verbose or in_json:
        show(("GROUP", "TYPE", "STATE"), [(each.group_id, each.type, each.state) for each in found], in_json=in_json)
        return
    for listing in found:
        echo(escape_controls(listing.group_id))


@groups.command()
@click.argument("names", metavar="[GROUP]...", nargs=-1)
@bootstrap_server
@click.option("--all-groups", is_flag=True, help="Every group.")
@click.option("--members", is_flag=True, help="A row for each member.")
@click.option("--state", is_flag=True, help="A row for each group.")
@click.option("--verbose", is_flag=True, help="With epochs, and what each member has.")
@json_option
@settings_option("client")
def describe(
    names: tuple[str, ...],
    bootstrap_server: str,
    all_groups: bool,
    members: bool,
    state: bool,
    verbose: bool,
    in_json: bool,
    settings: tuple[str, ...],
) -> None:
    """Print the position of groups in each partition, and the member that reads it."""
    if bool(names) == all_groups:
        raise senseless("name a GROUP, several, or none with --all-groups")
    if members and state:
        raise senseless("--members and --state exclude each other")
    with admin_at(bootstrap_server, settings) as admin:
        known = [each.group_id for each in admin.list_consumer_groups()] if all_groups else names
        with kinds_told(admin):
            found = list(admin.describe_consumer_groups(known).values())
        view = state_view if state else members_view if members else offsets_view
        columns, rows = view(admin, found, verbose)
    if not in_json:
        say_what_is_unusual(found)
    show(columns, rows, in_json=in_json)


def offsets_view(
    admin: Admin, groups: Sequence[ConsumerGroupDescription], verbose: bool
) -> tuple[Sequence[str], list[rows_of.Row]]:
    columns = rows_of.columns_of(rows_of.OFFSETS, rows_of.OFFSETS_VERBOSE, verbose=verbose)
    rows: list[rows_of.Row] = []
    for group in groups:
        committed, ends = committed_and_ends(admin, group)
        rows += rows_of.offset_rows(group, committed, ends, verbose=verbose)
    return columns, rows


def members_view(
    admin: Admin, groups: Sequence[ConsumerGroupDescription], verbose: bool
) -> tuple[Sequence[str], list[rows_of.Row]]:
    columns = rows_of.columns_of(rows_of.MEMBERS, rows_of.MEMBERS_VERBOSE, verbose=verbose)
    return columns, [row for group in groups for row in rows_of.member_rows(group, verbose=verbose)]


def state_view(
    admin: Admin, groups: Sequence[ConsumerGroupDescription], verbose: bool
) -> tuple[Sequence[str], list[rows_of.Row]]:
    columns = rows_of.columns_of(rows_of.STATE, rows_of.STATE_VERBOSE, verbose=verbose)
    return columns, [rows_of.state_row(group, verbose=verbose) for group in groups]


def say_what_is_unusual(groups: Sequence[ConsumerGroupDescription]) -> None:
    """On standard error, as Kafka's tool does."""
    for group in groups:
        if group.state == "Empty":
            echo(f"Consumer group '{escape_controls(group.group_id)}' has no active members.", err=True)
        elif group.state in REBALANCING:
            echo(f"Warning: Consumer group '{escape_controls(group.group_id)}' is rebalancing.", err=True)


@groups.command()
@click.argument("names", metavar="GROUP...", nargs=-1, required=True)
@bootstrap_server
@yes_option
@settings_option("client")
def delete(names: tuple[str, ...], bootstrap_server: str, agreed: bool, settings: tuple[str, ...]) -> None:
    """Forget groups that have no members, and what they committed. At a terminal it asks first."""
    with admin_at(bootstrap_server, settings) as admin:
        ask_at_terminal(lambda: aligned(LOST, committed(admin, names)), "Forget them for good?", agreed=agreed)
        admin.delete_consumer_groups(names)


def committed(admin: Admin, names: Iterable[str]) -> list[tuple[str, int]]:
    """Each group with the number of partitions that it committed for."""
    return [(name, len(admin.list_consumer_group_offsets(name))) for name in names]


@groups.command("delete-offsets")
@click.argument("group")
@bootstrap_server
@click.option("--topic", "topics", metavar="TOPIC[:P,...]", multiple=True, required=True, help="Whose offsets.")
@yes_option
@settings_option("client")
def delete_offsets(
    group: str, bootstrap_server: str, topics: tuple[str, ...], agreed: bool, settings: tuple[str, ...]
) -> None:
    """Forget what GROUP committed for topics, or for some of their partitions. At a terminal it asks first."""
    with admin_at(bootstrap_server, settings) as admin:
        chosen = chosen_partitions(admin, topics)
        ask_at_terminal(
            lambda: aligned(LOST_OFFSETS, offsets_among(admin, group, chosen)), "Forget them for good?", agreed=agreed
        )
        admin.delete_consumer_group_offsets(group, chosen)


def offsets_among(admin: Admin, group: str, chosen: Iterable[TopicPartition]) -> list[tuple[str, int, int]]:
    """Return the group's committed offsets of these partitions."""
    has = admin.list_consumer_group_offsets(group)
    return sorted((tp.topic, tp.partition, has[tp].offset) for tp in set(chosen) & has.keys())


commands: tuple[Callable[..., Any], ...] = (watch, reset_offsets)
for command in commands:
    groups.add_command(command)  # type: ignore[arg-type]
