"""`ottla records delete`: delete the records before an offset or a time permanently."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from ottla.cli.consent import confirm, yes_option
from ottla.cli.options import bootstrap_server, chosen_partitions, json_option, settings_option, usage_error
from ottla.cli.output import echo
from ottla.cli.records.moments import moment_of
from ottla.cli.tables import format_table, show
from ottla.cli.topics import admin_at

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.model import TopicPartition

PLAN = ("PARTITION", "FIRST-OFFSET", "END-OFFSET", "DELETE-BEFORE", "OFFSETS")
DONE = ("PARTITION", "LOW-WATERMARK")


@click.command()
@click.argument("topics", metavar="TOPIC[:P,...]...", nargs=-1, required=True)
@bootstrap_server
@click.option("--before-offset", type=click.IntRange(0), help="Delete the records before this offset.")
@click.option(
    "--before-time", metavar="TIME", help="Delete the records before: 2026-01-31T12:00, -7d, or ms since 1970."
)
@click.option("--all", "everything", is_flag=True, help="Delete all records.")
@yes_option
@json_option
@settings_option("client")
def delete(
    topics: tuple[str, ...],
    bootstrap_server: str,
    before_offset: int | None,
    before_time: str | None,
    everything: bool,
    agreed: bool,
    in_json: bool,
    settings: tuple[str, ...],
) -> None:
    """Delete the oldest records of topics, or of some of their partitions. Show the plan and ask for confirmation first.

    Prints the first remaining offset of each partition.
    """
    if sum((before_offset is not None, before_time is not None, everything)) != 1:
        raise usage_error("expected exactly one of --before-offset, --before-time, --all")
    moment = None if before_time is None else moment_of("--before-time", before_time, int(time.time() * 1000))
    with admin_at(bootstrap_server, settings) as admin:
        plan = plan_of(admin, topics, before_offset, moment)
        if not plan:
            echo("nothing to delete: there are no earlier records", err=True)
        else:
            rows = [(tp, *numbers, numbers[2] - numbers[0]) for tp, numbers in plan.items()]
            echo(format_table(PLAN, rows), err=True)
            confirm("Delete them permanently?", agreed=agreed)
        low = admin.delete_records({tp: numbers[2] for tp, numbers in plan.items()}) if plan else {}
    if plan or in_json:
        show(DONE, [(tp, low[tp]) for tp in sorted(low)], in_json=in_json)


def plan_of(
    admin: Admin, topics: tuple[str, ...], offset: int | None, moment: int | None
) -> Mapping[TopicPartition, tuple[int, int, int]]:
    """Return first offset, end offset and deletion offset of each partition that loses records."""
    from ottla.model import EARLIEST, LATEST

    chosen = chosen_partitions(admin, topics)
    first, end = (
        {tp: at.offset for tp, at in admin.list_offsets(dict.fromkeys(chosen, when)).items()}
        for when in (EARLIEST, LATEST)
    )
    before = dict(end)
    if moment is not None:
        at_moment = admin.list_offsets(dict.fromkeys(chosen, moment))
        before = {tp: at.offset if at.offset >= 0 else end[tp] for tp, at in at_moment.items()}
    elif offset is not None:
        before = {tp: min(offset, end[tp]) for tp in chosen}
    return {tp: (first[tp], end[tp], before[tp]) for tp in chosen if before[tp] > first[tp]}
