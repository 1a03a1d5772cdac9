"""`ottla groups reset-offsets`: change the committed offsets of a group without members."""

from __future__ import annotations

import csv
import io
import re
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from ottla.cli.groups.kinds import SHARE, STREAMS, groups_among
from ottla.cli.options import (
    bootstrap_server,
    chosen_partitions,
    group_argument,
    json_option,
    settings_option,
    usage_error,
)
from ottla.cli.output import echo
from ottla.cli.tables import show
from ottla.cli.topics import admin_at

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.model import TopicPartition

COLUMNS = ("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET")
DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)
SECONDS = {"days": 86_400, "hours": 3600, "minutes": 60, "seconds": 1}
IDLE = ("Empty", "Dead")


class Method(NamedTuple):
    """The method that finds the new offsets: one of the options, and its value."""

    option: str
    value: str | int | bool


@click.command("reset-offsets")
@group_argument
@bootstrap_server
@click.option(
    "-t",
    "--topic",
    "topics",
    metavar="TOPIC[:P,...]",
    multiple=True,
    help="A topic, or some of its partitions; may be repeated.",
)
@click.option("--all-topics", is_flag=True, help="All partitions with a committed offset.")
@click.option("--to-earliest", is_flag=True, help="To the first record.")
@click.option("--to-latest", is_flag=True, help="To the end.")
@click.option("--to-current", is_flag=True, help="To where they are; without an offset to the end.")
@click.option("--to-offset", type=click.IntRange(0), help="To this offset.")
@click.option("--shift-by", type=int, help="By this number of records; backwards if negative.")
@click.option("--by-duration", metavar="PnDTnHnMnS", help="To the first record after now minus this duration.")
@click.option(
    "--to-datetime", metavar="YYYY-MM-DDTHH:mm:SS.sss", help="To the first record at or after this time; UTC."
)
@click.option(
    "--from-file", metavar="FILE", type=click.Path(exists=True, dir_okay=False), help="To the offsets of a CSV file."
)
@click.option("--dry-run", is_flag=True, help="Only show the new offsets; the default without --execute.")
@click.option("--execute", is_flag=True, help="Commit the new offsets.")
@click.option("--export", is_flag=True, help="Print the result as CSV, which --from-file reads.")
@json_option
@settings_option("client")
def reset_offsets(
    group: str,
    bootstrap_server: str,
    topics: tuple[str, ...],
    all_topics: bool,
    dry_run: bool,
    execute: bool,
    export: bool,
    in_json: bool,
    settings: tuple[str, ...],
    **ways: str | int | bool | None,
) -> None:
    """Change the committed offsets of GROUP, which must have no members; of a share group, its start offsets."""
    way = selected_method(ways)
    if dry_run and execute:
        raise usage_error("--dry-run and --execute exclude each other")
    if way.option == "from_file":
        if topics or all_topics:
            raise usage_error("--from-file gives the partitions: omit --topic and --all-topics")
    elif bool(topics) == all_topics:
        raise usage_error("no partitions given: expected --topic (may be repeated) or --all-topics")
    with admin_at(bootstrap_server, settings) as admin:
        is_shared = refuse_active(admin, group)
        if is_shared:
            stored = {tp: at.start_offset for tp, at in admin.list_share_group_offsets(group).items()}
        else:
            stored = {tp: at.offset for tp, at in admin.list_consumer_group_offsets(group).items()}
        offsets = new_offsets(admin, group, topics, way, stored)
        if execute and is_shared:
            admin.alter_share_group_offsets(group, offsets)
        elif execute:
            admin.alter_consumer_group_offsets(group, offsets)
    rows = [(group, tp.topic, tp.partition, offset) for tp, offset in sorted(offsets.items())]
    if export:
        click.echo(as_csv(rows), nl=False)  # written without escapes, for --from-file
        return
    if not execute and not dry_run:
        echo("nothing was changed: add --execute to commit the new offsets", err=True)
    show(COLUMNS, rows, in_json=in_json)


def selected_method(ways: Mapping[str, str | int | bool | None]) -> Method:
    """Return the given method; raise a usage error unless exactly one is given."""
    given = [Method(option, value) for option, value in ways.items() if value is not None and value is not False]
    if len(given) != 1:
        names = ", ".join(f"--{option.replace('_', '-')}" for option in ways)
        raise usage_error(f"expected exactly one of {names}")
    return given[0]


def refuse_active(admin: Admin, group: str) -> bool:
    """Raise ClickException if the group has members, which would overwrite the new offsets by their own commits.

    Return True if it is a share group.
    """
    from ottla.errors import ErrorCode, KafkaError

    is_shared = False
    try:
        state = admin.describe_consumer_groups([group])[group].state
    except KafkaError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        is_shared = bool(groups_among(admin, [group], SHARE))
        if is_shared:
            state = admin.describe_share_groups([group])[group].state
        elif groups_among(admin, [group], STREAMS):
            state = admin.describe_streams_groups([group])[group].state
        else:
            return False  # the group is created by its first commit
    if state not in IDLE:
        raise click.ClickException(f"group {group!r} is {state}: offsets can be reset only while it has no members")
    return is_shared


def new_offsets(
    admin: Admin, group: str, topics: Sequence[str], way: Method, committed: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Return the new offset of each selected partition, limited to the partition's offsets."""
    from ottla.model import EARLIEST, LATEST

    if way.option == "from_file":
        wanted = read_csv(Path(str(way.value)), group)
        partitions = list(wanted)
    else:
        wanted = {}
        partitions = chosen_partitions(admin, topics) if topics else list(committed)
        if not partitions:
            raise click.ClickException(f"group {group!r} has committed no offsets: add --topic")
    first, end = (
        {tp: at.offset for tp, at in admin.list_offsets(dict.fromkeys(partitions, when)).items()}
        for when in (EARLIEST, LATEST)
    )
    match way.option:
        case "to_earliest":
            return first
        case "to_latest":
            return end
        case "to_current":
            return {tp: committed.get(tp, end[tp]) for tp in partitions}
        case "to_offset":
            wanted = dict.fromkeys(partitions, int(way.value))
        case "shift_by":
            wanted = {tp: shifted_offset(tp, committed, int(way.value)) for tp in partitions}
        case "by_duration" | "to_datetime":
            found = admin.list_offsets(dict.fromkeys(partitions, moment_ms(way)))
            wanted = {tp: at.offset if at.offset >= 0 else end[tp] for tp, at in found.items()}
    return {tp: clamp_offset(tp, offset, first[tp], end[tp]) for tp, offset in wanted.items()}


def clamp_offset(tp: TopicPartition, offset: int, first: int, end: int) -> int:
    """Return the offset, or the nearest existing one with a notice."""
    nearest = max(first, min(offset, end))
    if nearest != offset:
        echo(f"{tp} has no offset {offset}, only {first} to {end}: using {nearest}", err=True)
    return nearest


def shifted_offset(tp: TopicPartition, committed: Mapping[TopicPartition, int], by: int) -> int:
    """Return the committed offset shifted by a number of records."""
    if tp not in committed:
        raise click.ClickException(f"--shift-by needs a committed offset, and the group has none for {tp}")
    return committed[tp] + by


def moment_ms(way: Method) -> int:
    text = str(way.value)
    if way.option == "by_duration":
        return int((time.time() - seconds_of(text)) * 1000)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise usage_error(f"--to-datetime {text!r} must be a time such as 2026-01-31T12:00:00.000") from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def seconds_of(text: str) -> float:
    """Return the seconds of an ISO 8601 duration, such as PT1H30M."""
    found = DURATION.fullmatch(text)
    parts = {name: value for name, value in found.groupdict().items() if value} if found else {}
    if not parts:
        raise usage_error(f"--by-duration {text!r} must be a duration such as P7D or PT1H30M")
    return sum(float(value) * SECONDS[name] for name, value in parts.items())


def as_csv(rows: Sequence[tuple[str, str, int, int]]) -> str:
    """Return topic, partition, offset per line: the export format of Kafka's tool for one group."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(row[1:] for row in rows)
    return text.getvalue()


def read_csv(file: Path, group: str) -> dict[TopicPartition, int]:
    """Return the offsets of a CSV file, with or without the group as first column."""
    from ottla.model import TopicPartition

    offsets: dict[TopicPartition, int] = {}
    for number, line in enumerate(csv.reader(file.read_text().splitlines()), 1):
        if len(line) == 4 and line[0] != group:
            continue
        try:
            topic, partition, offset = line[-3:]
            offsets[TopicPartition(topic, int(partition))] = int(offset)
        except ValueError:
            raise click.ClickException(f"{file}: line {number} must be TOPIC,PARTITION,OFFSET") from None
    if not offsets:
        raise click.ClickException(f"{file}: no line for group {group!r}")
    return offsets
