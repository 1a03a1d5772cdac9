"""`ottla log dump | verify | repair`: print, check and repair the files of logs.

The commands work on files of Ottla or of Apache Kafka and need no broker. A broker may be running for the first two;
`repair` needs a stopped broker.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from ottla.cli.command_groups import CommandGroup
from ottla.cli.counts import format_count
from ottla.cli.options import json_option, metadata_option, usage_error
from ottla.cli.output import echo, to_json
from ottla.cli.storage.record_entries import (
    METADATA,
    OFFSETS,
    TRANSACTIONS,
    Entry,
    decode_or_none,
    renderer,
    sizes_only,
    to_plain,
)
from ottla.cli.tables import show
from ottla.errors import ConfigError
from ottla.model import TopicPartition

if TYPE_CHECKING:
    from ottla.storage.inspection import Inspection
    from ottla.storage.inspection.partition_check import PartitionCheck

DAMAGED = 1
REPAIRS = ("PARTITION", "FAULT", "REMEDY", "DONE")


@click.group(cls=CommandGroup)
def log() -> None:
    """Print and check the files of a data directory, Ottla's or Apache Kafka's, and set damage aside."""


@log.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--print-data-log", is_flag=True, help="Print the records with their keys and values.")
@click.option("--deep-iteration", is_flag=True, help="Print the records, without keys and values.")
@click.option("--offsets-decoder", is_flag=True, help=f"Read records as those of {OFFSETS}.")
@click.option("--transaction-log-decoder", is_flag=True, help=f"Read records as those of {TRANSACTIONS}.")
@click.option("--cluster-metadata-decoder", is_flag=True, help=f"Read records as those of {METADATA}.")
@click.option("--index-sanity-check", is_flag=True, help="Only check that index entries point to batches.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def dump(
    paths: tuple[Path, ...],
    print_data_log: bool,
    deep_iteration: bool,
    offsets_decoder: bool,
    transaction_log_decoder: bool,
    cluster_metadata_decoder: bool,
    index_sanity_check: bool,
    as_json: bool,
) -> None:
    """Print the content of log files: batches, index entries, producers, checkpoints.

    PATH is a file, a partition's folder or a whole data directory. The records of __consumer_offsets,
    __transaction_state and __cluster_metadata are decoded when they are printed. The exit status is 1 if anything is
    damaged.
    """
    decoders = {OFFSETS: offsets_decoder, TRANSACTIONS: transaction_log_decoder, METADATA: cluster_metadata_decoder}
    wanted = [topic for topic, chosen in decoders.items() if chosen]
    if len(wanted) > 1:
        raise usage_error(
            "--offsets-decoder, --transaction-log-decoder and --cluster-metadata-decoder exclude each other"
        )
    forced = wanted[0] if wanted else None
    if index_sanity_check:
        check_indexes(files_of(paths), as_json)
        return
    from ottla.storage.inspection import dump as entries_of

    damaged = False
    for path in files_of(paths):
        shown = print_data_log or forced is not None
        render = renderer(forced or path.absolute().parent.name.rpartition("-")[0]) if shown else sizes_only
        entries = entries_of(path, render if shown or deep_iteration else None)
        first = list(islice(entries, 1))  # reports a missing or foreign file before anything is printed
        if not as_json:
            echo(f"Dumping {path}")
        for entry in chain(first, entries):
            damaged |= entry.get("isvalid") is False or "error" in entry
            echo(json.dumps({"file": str(path), **entry}, default=to_plain) if as_json else line_of(entry))
    if damaged:
        raise click.exceptions.Exit(DAMAGED)


@log.command()
@click.argument("paths", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path))
@metadata_option
@click.option("--deep-iteration", is_flag=True, help="Decompress batches and count their records.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line: faults, notes, partitions.")
def verify(paths: tuple[Path, ...], metadata: Path | None, deep_iteration: bool, as_json: bool) -> None:
    """Check every byte of a data directory or of a partition's folder.

    This covers CRC, offsets and counts of every batch, index entries, snapshots and checkpoints. Nothing is changed, and a
    broker may be running. Name several directories of one broker together, since only one has the topic ids.
    The exit status is 0 if all is intact, 1 if anything is damaged.
    """
    metadata_homes = holders_of_metadata([*paths, *([] if metadata is None else [metadata])])
    found = [inspection_of(path, metadata_homes) for path in paths]
    twins = twins_of([each.path for each in found if each.whole])
    for each in found:
        each.twin = twins.get(each.path)
    faults = 0
    with progress_bar(sum(inspection.size_bytes for inspection in found)) as (progress, say):
        for inspection in found:
            checks = []
            for check in inspection.run(progress, deep=deep_iteration):
                checks.append(check)
                for line in report(check, as_json):
                    say(line)
            faults += sum(len(check.faults) for check in checks)
            if not as_json:
                say(format_summary(inspection, checks))
    if faults:
        raise click.exceptions.Exit(DAMAGED)


@log.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--topic-partition", "names", metavar="TOPIC-N", multiple=True, help="Only this partition; may be repeated."
)
@metadata_option
@click.option("--execute", is_flag=True, help="Repair; without it, only print the repairs.")
@json_option
def repair(directory: Path, names: tuple[str, ...], metadata: Path | None, execute: bool, in_json: bool) -> None:
    """Set damage aside, so that a broker serves the rest.

    DIR is a data directory that no broker uses. Damaged bytes are moved into files next to the log, which are never read
    and never deleted. Intact records keep their offsets. Without --execute nothing is changed.
    """
    from ottla.storage.directory.directory_lock import DirectoryLock
    from ottla.storage.repair import plan

    if not (directory / "meta.properties").is_file():
        raise usage_error(f"{directory} is not a data directory: expected one with meta.properties")
    wanted = [partition_named(name) for name in names]
    lock = DirectoryLock(directory)
    try:
        found = list(plan(directory, wanted, topic_ids_in(metadata or directory)))
        for each in found:
            if execute:
                each.execute()
            if not in_json:
                echo(f"{each.partition}: {each.fault}: {'did' if execute else 'would'} {each.remedy}")
    finally:
        lock.release()
    if in_json:
        show(REPAIRS, [(each.partition, each.fault, each.remedy, execute) for each in found], in_json=True)
    elif not found:
        echo(f"{directory}: nothing to repair")
    elif not execute:
        echo("nothing was changed; add --execute to repair")


def partition_named(name: str) -> TopicPartition:
    """Return the partition with this folder name; raise a usage error if the name is malformed."""
    from ottla.storage.segments.log_folder import partition_of

    partition = partition_of(name)
    if partition is None:
        raise usage_error(f"--topic-partition {name!r}: expected TOPIC-N, such as orders-0")
    return partition


def topic_ids_in(directory: Path) -> dict[str, UUID]:
    """Return the topic ids by name, as far as the cluster's metadata can be read."""
    from ottla.coordination.cluster.records import RemoveTopicRecord, TopicRecord, decode_record
    from ottla.storage.state_log.values import values_in

    ids: dict[str, UUID] = {}
    for value in values_in(directory / f"{METADATA}-0"):
        record = decode_or_none(partial(decode_record, value))
        if isinstance(record, TopicRecord):
            ids[record.name] = record.topic_id
        elif isinstance(record, RemoveTopicRecord):
            ids = {name: id_ for name, id_ in ids.items() if id_ != record.topic_id}
    return ids


def holders_of_metadata(directories: Iterable[Path]) -> list[Path]:
    """Return the directories that contain the cluster's metadata."""
    return [each for each in directories if (each / f"{METADATA}-0").is_dir()]


def inspection_of(path: Path, metadata: Sequence[Path]) -> Inspection:
    """Return the inspection of a directory; raise a usage error if it has no logs."""
    if path.is_file():
        raise usage_error(f"{path} is a file: expected its folder; to print the file: ottla log dump {path}")
    try:
        return inspection_at(path, metadata)
    except ConfigError as error:
        raise usage_error(str(error)) from None


def inspection_at(path: Path, metadata: Sequence[Path] = ()) -> Inspection:
    """Return the inspection of a directory; raise ConfigError if it has no logs.

    The topic ids come from the first directory in `metadata`, or from `path` itself.
    """
    from ottla.storage.inspection import find

    found = find(path)
    if found.whole:
        with suppress(OSError):  # reported when that file is checked
            found.topic_ids = topic_ids_in(path if path in metadata or not metadata else metadata[0])
    return found


def twins_of(paths: Sequence[Path]) -> dict[Path, Path]:
    """Return the directories that have the id of another one, with that other one."""
    from ottla.storage.inspection import find_twins

    return find_twins(paths)


def files_of(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the given files, and the known files in the given folders."""
    from ottla.storage.inspection import find
    from ottla.storage.inspection.dump import ALL
    from ottla.storage.inspection.state_files import find_reader

    for path in paths:
        if not path.is_dir():
            yield path
            continue
        inspection = find(path)
        for folder in [path, *inspection.folders] if inspection.whole else inspection.folders:
            yield from sorted(
                file for file in folder.iterdir() if file.is_file() and (file.suffix in ALL or find_reader(file))
            )


def check_indexes(files: Iterable[Path], as_json: bool) -> None:
    """Check that the entries of each index point to batches."""
    from ottla.storage.inspection.partition_check import INDEX_CHECKS, PartitionCheck

    checked: dict[Path, PartitionCheck] = {}
    damaged = False
    for path in files:
        if path.suffix not in INDEX_CHECKS:
            continue
        folder = path.parent
        if folder not in checked:
            checked[folder] = PartitionCheck(folder, live=False)
            checked[folder].run(lambda size: None)
        faults = [fault for fault in checked[folder].faults if fault.file == path]
        damaged |= bool(faults)
        for fault in faults:
            echo(json.dumps(fault.fields()) if as_json else f"{fault}")
        if not faults:
            echo(json.dumps({"file": str(path), "sane": True}) if as_json else f"{path} passed sanity check.")
    if damaged:
        raise click.exceptions.Exit(DAMAGED)


@contextmanager
def progress_bar(total: int) -> Iterator[tuple[Callable[[int], None], Callable[[str], None]]]:
    """Show a progress bar on standard error if that is a terminal; yield functions that advance it and print a line."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield (lambda size: None), click.echo
        return
    # On the same terminal lines are printed above the bar; redirected output is written directly.
    say = partial(console.print, markup=False, highlight=False, soft_wrap=True) if sys.stdout.isatty() else click.echo
    columns = (
        TextColumn("verifying"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)
        yield (lambda size: bar.advance(task, size)), say


def report(check: PartitionCheck, as_json: bool) -> Iterator[str]:
    """Yield the report of one partition."""
    if not as_json:
        yield from (f"damaged: {fault}" for fault in check.faults)
        yield from (f"note: {note}" for note in check.notes)
        return
    for fault in check.faults:
        yield json.dumps({"kind": "fault", **fault.fields()})
    for note in check.notes:
        yield json.dumps({"kind": "note", "file": str(note.file), "text": note.text})
    if check.segments:
        names = ("segments", "batches", "records", "bytes", "start_offset", "end_offset")
        yield json.dumps({"kind": "partition", "folder": str(check.folder), **{n: getattr(check, n) for n in names}})


def format_summary(inspection: Inspection, checks: list[PartitionCheck]) -> str:
    partitions, segments, batches, records, size, faults = (
        sum(bool(check.segments) for check in checks),
        *(sum(getattr(check, name) for check in checks) for name in ("segments", "batches", "records", "bytes")),
        sum(len(check.faults) for check in checks),
    )
    counts = ", ".join(
        (
            format_count(partitions, "partition"), format_count(segments, "segment"), format_count(batches, "batch", "es"),
            format_count(records, "record"), format_count(size, "byte"),
        )
    )  # fmt: skip
    state = " (in use by a broker)" if inspection.live else ""
    verdict = format_count(faults, "fault") if faults else "whole"
    return f"{inspection.path}{state}: {verdict}; {counts}"


def line_of(entry: Entry) -> str:
    """Return an entry in the format of Kafka's tool; records are indented by a bar."""
    bar = "| " if entry.get("record") else ""
    return bar + " ".join(f"{name}: {show_value(value)}" for name, value in entry.items() if name != "record")


def show_value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return to_json(value, default=to_plain)
    if isinstance(value, list):
        return f"[{','.join(map(str, value))}]"
    return "null" if value is None else str(value)
