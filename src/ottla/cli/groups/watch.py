"""`ottla groups watch`: a group's members, partitions and lag, updated continuously."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from shutil import get_terminal_size
from typing import TYPE_CHECKING

import click

from ottla.cli.groups.positions import committed_and_ends, lags_of, work_statuses
from ottla.cli.groups.rows import age_of, format_partitions, owners_of
from ottla.cli.live import LiveView
from ottla.cli.options import bootstrap_server, group_argument, json_lines_option, settings_option
from ottla.cli.topics import admin_at
from ottla.client.admin.group_timeline import GroupTimeline, name_of
from ottla.escaping import escape_controls

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ottla.client.admin import Admin, ConsumerGroupDescription
    from ottla.client.work.state.work_status import WorkStatus
    from ottla.model import TopicPartition

MEMBER_COLUMNS = 48
"""Terminal columns for a member's name, host and lag. If the partitions do not fit next to them, each member lists its own."""
GAP = 2
"""Blank terminal columns between two table columns."""
LAG_SECONDS = 1.0
"""The interval between lookups of offsets. The group itself is looked up each time."""


class WatchedGroup:
    """The last description of the group."""

    def __init__(self, admin: Admin, group_id: str) -> None:
        self._admin = admin
        self._group_id = group_id
        self._offsets_at = float("-inf")
        self._timeline = GroupTimeline()
        self.lags: Mapping[TopicPartition, int | None] = {}
        self.work: Mapping[TopicPartition, WorkStatus] = {}
        self.group = admin.describe_consumer_groups([group_id])[group_id]

    def refresh(self, now: float) -> list[str]:
        """Describe the group again; return a line for each change."""
        self.group = self._admin.describe_consumer_groups([self._group_id])[self._group_id]
        if now - self._offsets_at >= LAG_SECONDS:
            self._offsets_at = now
            committed, ends = committed_and_ends(self._admin, self.group)
            self.lags = lags_of({*committed, *owners_of(self.group)}, committed, ends)
            self.work = work_statuses(committed)
        return self._timeline.changes(self.group)

    def draw(self, whole: bool = False) -> RenderableType:
        """Return a table of all members; `whole` lists all partitions of each, even if they need several lines."""
        from rich.console import Group

        lines = [headline(self.group, self.lags)]
        if self.work:
            lines.append(work_line(self.work.values(), time.time()))
        return Group(*lines, matrix(self.group, self.lags, get_terminal_size().columns, whole))


@click.command()
@group_argument
@bootstrap_server
@click.option(
    "--interval", type=click.FloatRange(0.02), default=0.25, show_default=True, help="Seconds between updates."
)
@click.option("--seconds", type=click.FloatRange(0), help="End after this time; default: at Ctrl-C.")
@json_lines_option
@settings_option("client")
def watch(
    group: str,
    bootstrap_server: str,
    interval: float,
    seconds: float | None,
    in_json: bool,
    settings: tuple[str, ...],
) -> None:
    """Watch GROUP: its state, the partitions of each member, lag, and each change with its time.

    In a terminal the view is redrawn and has keys (? lists them); elsewhere it prints a line for each change.
    """
    with admin_at(bootstrap_server, settings) as admin:
        watched = WatchedGroup(admin, group)
        view = LiveView(watched.draw, in_json=in_json)
        end = time.monotonic() + (float("inf") if seconds is None else seconds)
        with view.open():
            while (now := time.monotonic()) < end and not view.has_ended:
                for change in watched.refresh(now):
                    state = watched.group
                    view.add_event(change, group=group, state=state.state, members=len(state.members))
                view.refresh()
                view.wait(max(0.0, min(interval, end - time.monotonic())))


def headline(group: ConsumerGroupDescription, lags: Mapping[TopicPartition, int | None]) -> RenderableType:
    from rich.text import Text

    style = "bold green" if group.state == "Stable" else "bold yellow"
    lag = sum(each or 0 for each in lags.values())
    protocol = group.partition_assignor or "no assignor yet"
    return Text.assemble(
        (escape_controls(group.group_id), "bold"),
        "  ",
        (group.state, style),
        f"  {group.type} · {escape_controls(protocol)} · coordinator {group.coordinator} · {len(group.members)} members · lag {lag}",
    )


def work_line(statuses: Collection[WorkStatus], now: float) -> RenderableType:
    """Return the line about the work loop, with the sums over its partitions."""
    from rich.text import Text

    sums = {name: sum(getattr(each, name) for each in statuses) for name in ("running", "waiting", "retrying", "dead")}
    oldest = min((each.oldest for each in statuses if each.oldest), default=0)
    age = age_of(oldest, now)
    counts = f"running {sums['running']} · waiting {sums['waiting']} · retrying "
    return Text.assemble(
        ("work", "bold"),
        f"  {counts}",
        (str(sums["retrying"]), "bold yellow" if sums["retrying"] else ""),
        " · dead letters ",
        (str(sums["dead"]), "bold red" if sums["dead"] else ""),
        "" if age is None else f" · oldest {age} s",
    )


def matrix(
    group: ConsumerGroupDescription, lags: Mapping[TopicPartition, int | None], columns: int, whole: bool
) -> RenderableType:
    """Return a table of members by partitions: the lag of an assigned partition, a dot for others; a list if it is too wide."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    partitions = sorted({*lags, *owners_of(group)})
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("MEMBER")
    table.add_column("HOST", style="dim")
    wide = sum(len(str(tp)) + GAP for tp in partitions) <= columns - MEMBER_COLUMNS
    for tp in partitions if wide else ():
        table.add_column(str(tp), justify="right")
    if not wide:
        table.add_column("PARTITIONS", overflow="fold" if whole else "ellipsis")
    table.add_column("LAG", justify="right", style="bold")
    for member in sorted(group.members, key=name_of):
        assigned = set(member.assignment)
        total = sum(lags.get(tp) or 0 for tp in assigned)
        cells = [cell(tp in assigned, lags.get(tp)) for tp in partitions] if wide else [format_partitions(assigned)]
        table.add_row(
            escape(escape_controls(name_of(member))), escape(escape_controls(member.host)), *cells, str(total)
        )
    unassigned = [tp for tp in partitions if tp not in owners_of(group)]
    if unassigned:
        cells = [cell(tp in unassigned, lags.get(tp)) for tp in partitions] if wide else [format_partitions(unassigned)]
        table.add_row("unassigned", "", *cells, str(sum(lags.get(tp) or 0 for tp in unassigned)), style="yellow")
    return table


def cell(is_mine: bool, lag: int | None) -> str:
    if not is_mine:
        return "[dim]·[/]"
    return "[bold]?[/]" if lag is None else f"[bold]{lag}[/]"
