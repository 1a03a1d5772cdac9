"""`ottla groups reset-offsets`: where a group without members is to read on."""

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

from ottla.cli.options import bootstrap_server, chosen_partitions, json_option, senseless, settings_option
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


class Way(NamedTuple):
    """How new offsets are found: one of the options, and its value."""

    option: str
    value: str | int | bool


@click.command("reset-offsets")
@click.argument("group")
@bootstrap_server
@click.option(
    "--topic", "topics", metavar="TOPIC[:P,...]", multiple=True, help="This topic, or these partitions of it."
)
@click.option("--all-topics", is_flag=True, help="All partitions the group has committed offsets for.")
@click.option("--to-earliest", is_flag=True, help="To the first record.")
@click.option("--to-latest", is_flag=True, help="To the end.")
@click.option("--to-current", is_flag=True, help="To where they are; without an offset to the end.")
@click.option("--to-offset", type=click.IntRange(0), help="To this offset.")
@click.option("--shift-by", type=int, help="By so many records, backwards when negative.")
@click.option("--by-duration", metavar="PnDTnHnMnS", help="To the first record of the last so many days, hours …")
@click.option("--to-datetime", metavar="YYYY-MM-DDTHH:mm:SS.sss", help="To the first record from then on; UTC.")
@click.option("--from-file", metavar="FILE", type=click.Path(exists=True, dir_okay=False), help="As a CSV file says.")
@click.option("--dry-run", is_flag=True, help="Only show what would be; this is what happens without --execute.")
@click.option("--execute", is_flag=True, help="Do it.")
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
    """Have GROUP, which must have no members, read on somewhere else."""
    way = the_way(ways)
    if dry_run and execute:
        raise senseless("--dry-run and --execute exclude each other")
    if way.option == "from_file":
        if topics or all_topics:
            raise senseless("--from-file says which partitions: leave --topic and --all-topics out")
    elif bool(topics) == all_topics:
        raise senseless("say which partitions: --topic, several times if need be, or --all-topics")
    with admin_at(bootstrap_server, settings) as admin:
        refuse_active(admin, group)
        offsets = new_offsets(admin, group, topics, way)
        if execute:
            admin.alter_consumer_group_offsets(group, offsets)
    rows = [(group, tp.topic, tp.partition, offset) for tp, offset in sorted(offsets.items())]
    if export:
        click.echo(as_csv(rows), nl=False)  # as it is, to be read again by --from-file
        return
    if not execute and not dry_run:
        echo("nothing has changed: add --execute to do it", err=True)
    show(COLUMNS, rows, in_json=in_json)


def the_way(ways: Mapping[str, str | int | bool | None]) -> Way:
    """The one that was given."""
    given = [Way(option, value) for option, value in ways.items() if value is not None and value is not False]
    if len(given) != 1:
        names = ", ".join(f"--{option.replace('_', '-')}" for option in ways)
        raise senseless(f"give exactly one of {names}")
    return given[0]


def refuse_active(admin: Admin, group: str) -> None:
    """Members would go on where they are, and overwrite what is set."""
    from ottla.errors import ErrorCode, KafkaError

    try:
        state = admin.describe_consumer_groups([group])[group].state
    except KafkaError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return  # it begins with its first offset
    if state not in IDLE:
        raise click.ClickException(f"group {group!r} is {state}: offsets can be reset only while it has no members")


def new_offsets(admin: Admin, group: str, topics: Sequence[str], way: Way) -> dict[TopicPartition, int]:
    """The new offset of each partition that is meant, within what the partition has."""
    from ottla.model import EARLIEST, LATEST

    committed = {tp: at.offset for tp, at in admin.list_consumer_group_offsets(group).items()}
    if way.option == "from_file":
        wanted = read_csv(Path(str(way.value)), group)
        partitions = list(wanted)
    else:
        wanted = {}
        partitions = chosen_partitions(admin, topics) if topics else list(committed)
        if not partitions:
            raise click.ClickException(f"group {group!r} has committed no offsets: name topics with --topic")
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
            wanted = {tp: moved(tp, committed, int(way.value)) for tp in partitions}
        case "by_duration" | "to_datetime":
            found = admin.list_offsets(dict.fromkeys(partitions, moment_ms(way)))
            wanted = {tp: at.offset if at.offset >= 0 else end[tp] for tp, at in found.items()}
    return {tp: within(tp, offset, first[tp], end[tp]) for tp, offset in wanted.items()}


def within(tp: TopicPartition, offset: int, first: int, end: int) -> int:
    """The offset, or the nearest that the partition has, which is said."""
    nearest = max(first, min(offset, end))
    if nearest != offset:
        echo(f"{tp} has no offset {offset}, only {first} to {end}: {nearest} it is", err=True)
    return nearest


def moved(tp: TopicPartition, committed: Mapping[TopicPartition, int], by: int) -> int:
    """An offset so many records on."""
    if tp not in committed:
        raise click.ClickException(f"the group has committed no offset for {tp}, which --shift-by could start from")
    return committed[tp] + by


def moment_ms(way: Way) -> int:
    text = str(way.value)
    if way.option == "by_duration":
        return int((time.time() - seconds_of(text)) * 1000)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise senseless(f"--to-datetime {text!r} must be a time such as 2026-01-31T12:00:00.000") from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def seconds_of(text: str) -> float:
    """A duration of ISO 8601, such as PT1H30M."""
    found = DURATION.fullmatch(text)
    parts = {name: value for name, value in found.groupdict().items() if value} if found else {}
    if not parts:
        raise senseless(f"--by-duration {text!r} must be a duration such as P7D or PT1H30M")
    return sum(float(value) * SECONDS[name] for name, value in parts.items())


def as_csv(rows: Sequence[tuple[str, str, int, int]]) -> str:
    """Topic, partition, offset: what Kafka's tool writes of one group."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(row[1:] for row in rows)
    return text.getvalue()


def read_csv(file: Path, group: str) -> dict[TopicPartition, int]:
    """Offsets of a CSV file, with the group in front or without."""
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
        raise click.ClickException(f"{file}: no line is about group {group!r}")
    return offsets
