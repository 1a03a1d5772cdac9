"""`ottla groups list | describe | watch | reset-offsets | delete-offsets | delete`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.command_groups import CommandGroup
from ottla.cli.consent import confirm_at_terminal, yes_option
from ottla.cli.groups import overview
from ottla.cli.groups import rows as rows_of
from ottla.cli.groups.kinds import SHARE, STATES, STREAMS, TYPES, describe_groups, of_consumers, share_groups_among
from ottla.cli.groups.positions import committed_and_ends, streams_committed_and_ends, work_statuses
from ottla.cli.groups.reset import reset_offsets
from ottla.cli.groups.watch import watch
from ottla.cli.options import (
    bootstrap_server,
    chosen_partitions,
    group_argument,
    json_option,
    known_name,
    list_options,
    names_argument,
    reject_both,
    settings_option,
    usage_error,
)
from ottla.cli.output import echo, prints_table
from ottla.cli.tables import format_table, show
from ottla.cli.topics import admin_at
from ottla.escaping import escape_controls

if TYPE_CHECKING:
    from ottla.client.admin import Admin, ConsumerGroupDescription, ShareGroupDescription, StreamsGroupDescription
    from ottla.model import TopicPartition

LOST = ("GROUP", "COMMITTED PARTITIONS")
LOST_OFFSETS = ("TOPIC", "PARTITION", "COMMITTED OFFSET")
REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")


@click.group(cls=CommandGroup)
def groups() -> None:
    """List, describe and watch consumer groups and share groups, and move their offsets."""


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
@click.option("--verbose", is_flag=True, help="Print type and state too, without the requests of --long.")
@list_options
@json_option
@settings_option("client")
def list_groups(
    bootstrap_server: str,
    states: tuple[str, ...],
    types: tuple[str, ...],
    verbose: bool,
    long: bool,
    names_only: bool,
    in_json: bool,
    settings: tuple[str, ...],
) -> None:
    """Print all groups: at a terminal with type, state, members and lag, else the names of consumer groups, one per line.

    LAG is the number of records after the committed offsets, of all partitions together.
    """
    states = tuple(known_name("state", each, STATES) for each in states)
    types = tuple(known_name("type", each, TYPES) for each in types)
    reject_both(long, names_only)
    in_table = long or (not in_json and not verbose and prints_table(names_only))
    with admin_at(bootstrap_server, settings) as admin:
        found = admin.list_groups(states=states, types=types)
        if in_table:
            show(overview.COLUMNS, overview.overview_rows(admin, found), in_json=in_json)
            return
    if not {SHARE, STREAMS} & {each.lower() for each in types}:
        found = of_consumers(found)
    if verbose or in_json:
        show(("GROUP", "TYPE", "STATE"), [(each.group_id, each.type, each.state) for each in found], in_json=in_json)
        return
    for listing in found:
        echo(escape_controls(listing.group_id))


@groups.command()
@names_argument("names", "group", "GROUP", required=False)
@bootstrap_server
@click.option("--all-groups", is_flag=True, help="Every group.")
@click.option("--members", is_flag=True, help="Print a row for each member.")
@click.option("--state", is_flag=True, help="Print a row for each group.")
@click.option("--work", is_flag=True, help="Print a row for each partition of a work loop (ottla.work).")
@click.option("--topology", is_flag=True, help="Print the topology of streams groups, if the broker stores it.")
@click.option("--verbose", is_flag=True, help="Print epochs and assignments too.")
@json_option
@settings_option("client")
def describe(
    names: tuple[str, ...],
    bootstrap_server: str,
    all_groups: bool,
    members: bool,
    state: bool,
    work: bool,
    topology: bool,
    verbose: bool,
    in_json: bool,
    settings: tuple[str, ...],
) -> None:
    """Print the committed offsets and the lag of groups by partition, and the member that reads it.

    If a group is that of a work loop (ottla.work), a second table has its running, waiting and retrying records as of the last
    commit, the number of dead letters, and the age of the oldest unfinished record.

    Of a share group it prints the start offsets and the lag, of a streams group also the task that reads each partition.
    """
    if bool(names) == all_groups:
        raise usage_error("expected GROUP (may be repeated) or --all-groups")
    check_views(members=members, state=state, work=work, topology=topology)
    if topology and (all_groups or in_json):
        raise usage_error("--topology requires GROUP, and is printed as text only")
    with admin_at(bootstrap_server, settings) as admin:
        if topology:
            print_topologies(admin, names)
            return
        known = [each.group_id for each in admin.list_consumer_groups()] if all_groups else names
        found, shared, streams = describe_groups(admin, known)
        view = state_view if state else members_view if members else work_view if work else offsets_view
        tables = [view(admin, found, verbose)] if found or not (shared or streams) else []
        if view is offsets_view and not in_json and (table := work_view(admin, found, verbose))[1]:
            tables.append(table)
        if shared:
            tables.append(share_view(admin, shared, "state" if state else "members" if members else "", verbose))
        if streams:
            tables.append(streams_view(admin, streams, "state" if state else "members" if members else "", verbose))
    if not in_json:
        warn_about_states([*found, *shared, *streams])
    for columns, rows in tables:
        show(columns, rows, in_json=in_json)


def check_views(**views: bool) -> None:
    """Raise a usage error if more than one of the options is given."""
    if sum(views.values()) > 1:
        *names, last = (f"--{name}" for name in views)
        raise usage_error(f"{', '.join(names)} and {last} exclude each other")


def print_topologies(admin: Admin, names: Sequence[str]) -> None:
    """Print the topologies of streams groups in the form of Kafka's tool."""
    found = admin.describe_streams_groups(names, include_topology_description=True)
    for name in names:
        description = found[name].topology_description
        if description is None:
            raise click.ClickException(
                f"no topology of group {name!r} is stored: the broker stores it with "
                "group.streams.topology.description.plugin.class"
            )
        for line in rows_of.topology_lines(description):
            echo(escape_controls(line))


def offsets_view(
    admin: Admin, groups: Sequence[ConsumerGroupDescription], verbose: bool
) -> tuple[Sequence[str], list[rows_of.Row]]:
    columns = rows_of.columns_of(rows_of.OFFSETS, rows_of.OFFSETS_VERBOSE, verbose=verbose)
    rows: list[rows_of.Row] = []
    for group in groups:
        committed, ends = committed_and_ends(admin, group)
        rows += rows_of.offset_rows(group, committed, ends, verbose=verbose)
    return columns, rows


def work_view(
    admin: Admin, groups: Sequence[ConsumerGroupDescription], verbose: bool
) -> tuple[Sequence[str], list[rows_of.Row]]:
    rows: list[rows_of.Row] = []
    for group in groups:
        statuses = work_statuses(admin.list_consumer_group_offsets(group.group_id))
        rows += rows_of.work_rows(group, statuses, time.time())
    return rows_of.WORK, rows


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


def share_view(
    admin: Admin, groups: Sequence[ShareGroupDescription], what: str, verbose: bool
) -> tuple[Sequence[str], list[rows_of.Row]]:
    """Return columns and rows of share groups: their `state`, `members`, or else offsets."""
    if what == "state":
        columns = rows_of.columns_of(rows_of.SHARE_STATE, rows_of.SHARE_STATE_VERBOSE, verbose=verbose)
        return columns, [rows_of.share_state_row(group, verbose=verbose) for group in groups]
    if what == "members":
        columns = rows_of.columns_of(rows_of.SHARE_MEMBERS, rows_of.SHARE_MEMBERS_VERBOSE, verbose=verbose)
        return columns, [row for group in groups for row in rows_of.share_member_rows(group, verbose=verbose)]
    columns = rows_of.columns_of(rows_of.SHARE_OFFSETS, rows_of.SHARE_OFFSETS_VERBOSE, verbose=verbose)
    rows: list[rows_of.Row] = []
    for group in groups:
        offsets = admin.list_share_group_offsets(group.group_id)
        rows += rows_of.share_offset_rows(group, offsets, verbose=verbose)
    return columns, rows


def streams_view(
    admin: Admin, groups: Sequence[StreamsGroupDescription], what: str, verbose: bool
) -> tuple[Sequence[str], list[rows_of.Row]]:
    """Return columns and rows of streams groups: their `state`, `members` with tasks, or else offsets."""
    if what == "state":
        columns = rows_of.columns_of(rows_of.SHARE_STATE, rows_of.SHARE_STATE_VERBOSE, verbose=verbose)
        return columns, [rows_of.share_state_row(group, verbose=verbose) for group in groups]
    if what == "members":
        columns = rows_of.columns_of(rows_of.STREAMS_MEMBERS, rows_of.STREAMS_MEMBERS_VERBOSE, verbose=verbose)
        return columns, [row for group in groups for row in rows_of.streams_member_rows(group, verbose=verbose)]
    columns = rows_of.columns_of(rows_of.STREAMS_OFFSETS, rows_of.STREAMS_OFFSETS_VERBOSE, verbose=verbose)
    rows: list[rows_of.Row] = []
    for group in groups:
        committed, ends = streams_committed_and_ends(admin, group)
        rows += rows_of.streams_offset_rows(group, committed, ends, verbose=verbose)
    return columns, rows


def warn_about_states(
    groups: Sequence[ConsumerGroupDescription | ShareGroupDescription | StreamsGroupDescription],
) -> None:
    """Warn on standard error about empty and rebalancing groups, as Kafka's tool does."""
    from ottla.client.admin import ShareGroupDescription, StreamsGroupDescription

    kinds: dict[type, str] = {ShareGroupDescription: "Share", StreamsGroupDescription: "Streams"}
    for group in groups:
        name = f"{kinds.get(type(group), 'Consumer')} group '{escape_controls(group.group_id)}'"
        if group.state == "Empty":
            echo(f"{name} has no active members.", err=True)
        elif group.state in REBALANCING:
            echo(f"Warning: {name} is rebalancing.", err=True)


@groups.command()
@names_argument("names", "group", "GROUP")
@bootstrap_server
@yes_option
@settings_option("client")
def delete(names: tuple[str, ...], bootstrap_server: str, agreed: bool, settings: tuple[str, ...]) -> None:
    """Delete groups without members and their committed offsets. At a terminal it asks for confirmation."""
    with admin_at(bootstrap_server, settings) as admin:
        confirm_at_terminal(
            lambda: format_table(LOST, count_committed(admin, names)), "Delete them permanently?", agreed=agreed
        )
        admin.delete_consumer_groups(names)


def count_committed(admin: Admin, names: Iterable[str]) -> list[tuple[str, int]]:
    """Return each group with the number of its committed partitions, for a share group those with a start offset."""
    names = list(names)
    shared = share_groups_among(admin, names)
    return [
        (name, len(admin.list_share_group_offsets(name) if name in shared else admin.list_consumer_group_offsets(name)))
        for name in names
    ]


@groups.command("delete-offsets")
@group_argument
@bootstrap_server
@click.option(
    "-t",
    "--topic",
    "topics",
    metavar="TOPIC[:P,...]",
    multiple=True,
    required=True,
    help="The topic, or some of its partitions.",
)
@yes_option
@settings_option("client")
def delete_offsets(
    group: str, bootstrap_server: str, topics: tuple[str, ...], agreed: bool, settings: tuple[str, ...]
) -> None:
    """Delete GROUP's committed offsets of topics or of some of their partitions; of a share group only whole topics.

    At a terminal it asks for confirmation.
    """
    with admin_at(bootstrap_server, settings) as admin:
        chosen = chosen_partitions(admin, topics)
        if share_groups_among(admin, [group]):
            delete_start_offsets(admin, group, topics, chosen, agreed=agreed)
            return
        confirm_at_terminal(
            lambda: format_table(LOST_OFFSETS, offsets_among(admin, group, chosen)),
            "Delete them permanently?",
            agreed=agreed,
        )
        admin.delete_consumer_group_offsets(group, chosen)


def delete_start_offsets(
    admin: Admin, group: str, topics: Sequence[str], chosen: Iterable[TopicPartition], *, agreed: bool
) -> None:
    """Delete the start offsets of a share group, which is possible for whole topics only."""
    for topic in topics:
        if ":" in topic:
            raise usage_error(f"--topic {topic}: {group!r} is a share group; its offsets are deleted for whole topics")
    has = admin.list_share_group_offsets(group)
    lost = sorted((tp.topic, tp.partition, has[tp].start_offset) for tp in set(chosen) & has.keys())
    confirm_at_terminal(lambda: format_table(LOST_OFFSETS, lost), "Delete them permanently?", agreed=agreed)
    admin.delete_share_group_offsets(group, sorted(set(topics)))


def offsets_among(admin: Admin, group: str, chosen: Iterable[TopicPartition]) -> list[tuple[str, int, int]]:
    """Return the group's committed offsets of these partitions."""
    has = admin.list_consumer_group_offsets(group)
    return sorted((tp.topic, tp.partition, has[tp].offset) for tp in set(chosen) & has.keys())


commands: tuple[Callable[..., Any], ...] = (watch, reset_offsets)
for command in commands:
    groups.add_command(command)  # type: ignore[arg-type]
