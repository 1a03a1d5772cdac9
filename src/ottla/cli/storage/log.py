"""`ottla log dump | verify | repair`: what is in the files of a log, whether all of it is as it was written, and setting
aside what is not.

Works on files, of Ottla or of Apache Kafka; needs no broker. The first two disturb none, the last wants none to be there.
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

from ottla.cli.options import json_option, metadata_option, senseless
from ottla.cli.output import echo, to_json
from ottla.cli.storage.record_entries import (
    METADATA,
    OFFSETS,
    TRANSACTIONS,
    Entry,
    decoded,
    plain,
    renderer,
    sizes_only,
)
from ottla.cli.tables import show
from ottla.cli.verbs import Verbs
from ottla.errors import ConfigError
from ottla.model import TopicPartition

if TYPE_CHECKING:
    from ottla.storage.inspection import Inspection
    from ottla.storage.inspection.partition_check import PartitionCheck

DAMAGED = 1
REPAIRS = ("PARTITION", "FAULT", "REMEDY", "DONE")


@click.group(cls=Verbs)
def log() -> None:
    """Look into the files of a data directory, Ottla's or Apache Kafka's, and set damage aside."""


@log.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--print-data-log", is_flag=True, help="Also the records with their keys and values.")
@click.option("--deep-iteration", is_flag=True, help="Also the records, without keys and values.")
@click.option("--offsets-decoder", is_flag=True, help=f"Read records as those of {OFFSETS}.")
@click.option("--transaction-log-decoder", is_flag=True, help=f"Read records as those of {TRANSACTIONS}.")
@click.option("--cluster-metadata-decoder", is_flag=True, help=f"Read records as those of {METADATA}.")
@click.option("--index-sanity-check", is_flag=True, help="Only say of indexes whether they lead to batches.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
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
    """Print what is in files of logs: batches, index entries, producers, checkpoints.

    PATH is a file, a partition's folder or a whole data directory. The records of __consumer_offsets,
    __transaction_state and __cluster_metadata are decoded when they are printed. The exit status is 1 if anything is
    damaged.
    """
    decoders = {OFFSETS: offsets_decoder, TRANSACTIONS: transaction_log_decoder, METADATA: cluster_metadata_decoder}
    wanted = [topic for topic, chosen in decoders.items() if chosen]
    if len(wanted) > 1:
        raise senseless(
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
        begun = list(islice(entries, 1))  # a file that is not there, or none of a log, is said so and nothing before
        if not as_json:
            echo(f"Dumping {path}")
        for entry in chain(begun, entries):
            damaged |= entry.get("isvalid") is False or "error" in entry
            echo(json.dumps({"file": str(path), **entry}, default=plain) if as_json else line_of(entry))
    if damaged:
        raise click.exceptions.Exit(DAMAGED)


@log.command()
@click.argument("paths", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path))
@metadata_option
@click.option("--deep-iteration", is_flag=True, help="Also unpack batches and count their records.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line: faults, notes, partitions.")
def verify(paths: tuple[Path, ...], metadata: Path | None, deep_iteration: bool, as_json: bool) -> None:
    """Check every byte of a data directory or of a partition's folder.

    CRC, offsets and counts of every batch, index entries, snapshots and checkpoints. Nothing is changed, and a
    broker may be at work meanwhile. Several directories of one broker are best named together: only one has the ids
    of topics. The exit status is 0 if all is whole, 1 if anything is damaged.
    """
    told_by = holders_of_metadata([*paths, *([] if metadata is None else [metadata])])
    found = [inspection_of(path, told_by) for path in paths]
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
                say(summary(inspection, checks))
    if faults:
        raise click.exceptions.Exit(DAMAGED)


@log.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--topic-partition", "names", metavar="TOPIC-N", multiple=True, help="Only this one; several times.")
@metadata_option
@click.option("--execute", is_flag=True, help="Do it, rather than say what would be done.")
@json_option
def repair(directory: Path, names: tuple[str, ...], metadata: Path | None, execute: bool, in_json: bool) -> None:
    """Set damage aside, so that a broker serves the rest.

    DIR is a data directory that no broker uses. Damaged bytes are moved into files beside the log, which nothing reads
    and nothing deletes; all that is whole stays, at the offsets that it had. Without --execute nothing is changed.
    """
    from ottla.storage.directory.directory_lock import DirectoryLock
    from ottla.storage.repair import plan

    if not (directory / "meta.properties").is_file():
        raise senseless(f"{directory} is no data directory: name the one with meta.properties")
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
        echo("nothing was changed; add --execute to do this")


def partition_named(name: str) -> TopicPartition:
    """The partition of that name, as its folder is called."""
    from ottla.storage.segments.log_folder import partition_of

    partition = partition_of(name)
    if partition is None:
        raise senseless(f"--topic-partition {name!r}: it is TOPIC-N, such as orders-0")
    return partition


def topic_ids_in(directory: Path) -> dict[str, UUID]:
    """The ids of topics, as far as the cluster's metadata can be read."""
    from ottla.coordination.cluster.records import RemoveTopicRecord, TopicRecord, decode_record
    from ottla.storage.state_log.values import values_in

    ids: dict[str, UUID] = {}
    for value in values_in(directory / f"{METADATA}-0"):
        record = decoded(partial(decode_record, value))
        if isinstance(record, TopicRecord):
            ids[record.name] = record.topic_id
        elif isinstance(record, RemoveTopicRecord):
            ids = {name: id_ for name, id_ in ids.items() if id_ != record.topic_id}
    return ids


def holders_of_metadata(directories: Iterable[Path]) -> list[Path]:
    """Those of a broker's directories that have the cluster's metadata."""
    return [each for each in directories if (each / f"{METADATA}-0").is_dir()]


def inspection_of(path: Path, metadata: Sequence[Path]) -> Inspection:
    """What is there to verify; a mistake in the command where it is nothing."""
    if path.is_file():
        raise senseless(f"{path} is a file: name its folder, or print the file with: ottla log dump {path}")
    try:
        return inspection_at(path, metadata)
    except ConfigError as error:
        raise senseless(str(error)) from None


def inspection_at(path: Path, metadata: Sequence[Path] = ()) -> Inspection:
    """What is there; ConfigError where there are no logs. The first of the directories in `metadata` tells the ids of topics, else its own."""
    from ottla.storage.inspection import find

    found = find(path)
    if found.whole:
        with suppress(OSError):  # which is told where that file is looked at
            found.topic_ids = topic_ids_in(path if path in metadata or not metadata else metadata[0])
    return found


def twins_of(paths: Sequence[Path]) -> dict[Path, Path]:
    """Those of several data directories that go by the id of another one, and which that is."""
    from ottla.storage.inspection import find_twins

    return find_twins(paths)


def files_of(paths: Iterable[Path]) -> Iterator[Path]:
    """Files themselves, and all that is known in folders."""
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
    """Say of each index whether it leads to batches."""
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
    """A bar on standard error where that is a terminal; what to tell it, and how to print beside it."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield (lambda size: None), click.echo
        return
    # Lines for the same terminal go above the bar; what is redirected goes where it is wanted.
    say = partial(console.print, markup=False, highlight=False, soft_wrap=True) if sys.stdout.isatty() else click.echo
    columns = (
        TextColumn("verifying"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)
        yield (lambda size: bar.advance(task, size)), say


def report(check: PartitionCheck, as_json: bool) -> Iterator[str]:
    """What is to be said of one partition."""
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


def summary(inspection: Inspection, checks: list[PartitionCheck]) -> str:
    partitions, segments, batches, records, size, faults = (
        sum(bool(check.segments) for check in checks),
        *(sum(getattr(check, name) for check in checks) for name in ("segments", "batches", "records", "bytes")),
        sum(len(check.faults) for check in checks),
    )
    counts = ", ".join(
        (
            counted(partitions, "partition"), counted(segments, "segment"), counted(batches, "batch", "es"),
            counted(records, "record"), counted(size, "byte"),
        )
    )  # fmt: skip
    state = " (in use by a broker)" if inspection.live else ""
    verdict = counted(faults, "fault") if faults else "whole"
    return f"{inspection.path}{state}: {verdict}; {counts}"


def counted(count: int, noun: str, plural: str = "s") -> str:
    return f"{count:,} {noun}{plural * (count != 1)}"


def line_of(entry: Entry) -> str:
    """An entry as Kafka's tool prints it; records are indented by a bar."""
    bar = "| " if entry.get("record") else ""
    return bar + " ".join(f"{name}: {shown(value)}" for name, value in entry.items() if name != "record")


def shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return to_json(value, default=plain)
    if isinstance(value, list):
        return f"[{','.join(map(str, value))}]"
    return "null" if value is None else str(value)
