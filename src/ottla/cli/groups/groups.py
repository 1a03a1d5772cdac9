"""`ottla groups list | describe | watch | reset-offsets | delete-offsets | delete`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.command_groups import CommandGroup
from ottla.cli.consent import confirm_at_terminal, yes_option
from ottla.cli.groups import rows as rows_of
from ottla.cli.groups.kinds import SHARE, STATES, STREAMS, TYPES, describe_groups, of_consumers, share_groups_among
from ottla.cli.groups.positions import committed_and_ends
from ottla.cli.groups.reset import reset_offsets
from ottla.cli.groups.watch import watch
from ottla.cli.options import bootstrap_server, chosen_partitions, json_option, known_name, settings_option, usage_error
from ottla.cli.output import echo
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
@click.option("--verbose", is_flag=True, help="Print type and state too.")
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
    """Print the names of all consumer groups, one per line; with --type also groups of other types."""
    states = tuple(known_name("state", each, STATES) for each in states)
    types = tuple(known_name("type", each, TYPES) for each in types)
    with admin_at(bootstrap_server, settings) as admin:
        found = admin.list_groups(states=states, types=types)
    if not {SHARE, STREAMS} & {each.lower() for each in types}:
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
@click.option("--members", is_flag=True, help="Print a row for each member.")
@click.option("--state", is_flag=True, help="Print a row for each group.")
@click.option("--verbose", is_flag=True, help="Print epochs and assignments too.")
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
    """Print the committed offsets and the lag of groups by partition, and the member that reads it.

    Of a share group it prints the start offsets and the lag, of a streams group the members with their tasks.
    """
    if bool(names) == all_groups:
        raise usage_error("expected GROUP (may be repeated) or --all-groups")
    if members and state:
        raise usage_error("--members and --state exclude each other")
    with admin_at(bootstrap_server, settings) as admin:
        known = [each.group_id for each in admin.list_consumer_groups()] if all_groups else names
        found, shared, streams = describe_groups(admin, known)
        view = state_view if state else members_view if members else offsets_view
        tables = [view(admin, found, verbose)] if found or not (shared or streams) else []
        if shared:
            tables.append(share_view(admin, shared, "state" if state else "members" if members else "", verbose))
        if streams:
            tables.append(streams_view(streams, verbose=verbose, with_members=not state))
    if not in_json:
        warn_about_states([*found, *shared, *streams])
    for columns, rows in tables:
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
    groups: Sequence[StreamsGroupDescription], *, verbose: bool, with_members: bool
) -> tuple[Sequence[str], list[rows_of.Row]]:
    """Return columns and rows of streams groups: their members with tasks, or their states."""
    if with_members:
        columns = rows_of.columns_of(rows_of.STREAMS_MEMBERS, rows_of.STREAMS_MEMBERS_VERBOSE, verbose=verbose)
        return columns, [row for group in groups for row in rows_of.streams_member_rows(group, verbose=verbose)]
    columns = rows_of.columns_of(rows_of.SHARE_STATE, rows_of.SHARE_STATE_VERBOSE, verbose=verbose)
    return columns, [rows_of.share_state_row(group, verbose=verbose) for group in groups]


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
@click.argument("names", metavar="GROUP...", nargs=-1, required=True)
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
@click.argument("group")
@bootstrap_server
@click.option(
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
