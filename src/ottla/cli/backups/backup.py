"""`ottla backup create | show | verify`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ottla.cli.command_groups import CommandGroup
from ottla.cli.counts import format_count
from ottla.cli.options import bootstrap_server, client_settings, json_option, read_as_usage, settings_option
from ottla.cli.output import echo
from ottla.cli.progress_lines import ProgressLines
from ottla.cli.tables import format_size, show
from ottla.escaping import escape_controls

if TYPE_CHECKING:
    from ottla.backup import Manifest

F = TypeVar("F", bound=Callable[..., Any])
ANSWER_MS = 60_000
CONTENTS = ("TOPIC", "PARTITIONS", "RECORDS", "SIZE", "OFFSETS")
folder_argument = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
present_folder = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False, exists=True))


def selection_options(verb: str) -> Callable[[F], F]:
    """Return a decorator that adds the options that select topics and groups."""

    def add(command: F) -> F:
        for option in reversed(
            (
                click.option("--exclude", metavar="PATTERN", multiple=True, help="Topics to exclude; may be repeated."),
                click.option(
                    "--groups",
                    metavar="PATTERN",
                    multiple=True,
                    help=f"{verb.capitalize()} the offsets of these groups only.",
                ),
                click.option(
                    "--exclude-groups",
                    metavar="PATTERN",
                    multiple=True,
                    help=f"Do not {verb} the offsets of these groups.",
                ),
                click.option("--no-groups", is_flag=True, help=f"Do not {verb} offsets of groups."),
            )
        ):
            command = option(command)
        return command

    return add


@click.group(cls=CommandGroup)
def backup() -> None:
    """Back up a cluster or topics into a folder, and check a backup. `ottla restore` restores it."""


@backup.command("create")
@folder_argument
@click.argument("topics", metavar="[TOPIC...]", nargs=-1)
@bootstrap_server
@selection_options("back up")
@click.option("--no-access", is_flag=True, help="Do not back up access rules and quotas.")
@click.option(
    "--skip-leaderless",
    "skips_leaderless",
    is_flag=True,
    help="Skip partitions without a leader that answers. The backup is incomplete then, and the command ends with status 1.",
)
@click.option(
    "--format",
    "segment_format",
    type=click.Choice(["log", "parquet"]),
    help="Format of the files with records. Default: log, Kafka's own.",
)
@json_option
@settings_option("client")
def create(
    folder: Path,
    topics: tuple[str, ...],
    bootstrap_server: str,
    exclude: tuple[str, ...],
    groups: tuple[str, ...],
    exclude_groups: tuple[str, ...],
    no_groups: bool,
    no_access: bool,
    skips_leaderless: bool,
    segment_format: Any,
    in_json: bool,
    settings: tuple[str, ...],
) -> None:
    """Back up topics into DIR, or add what is new to the backup there.

    TOPIC is a name or a regular expression for whole names; without any, all topics are backed up, or those of the last
    run. The backup contains the records that are committed when the command starts, the topics' configs, the offsets and
    configs of groups, and with all topics also access rules and quotas. An interrupted run continues.
    """
    from ottla.backup import Backup, BackupSettings
    from ottla.client.process.stop_signals import stop_on_signals

    with read_as_usage():
        client = client_settings(bootstrap_server, settings, default_api_timeout_ms=ANSWER_MS)
        selection = selection_of(topics, exclude, groups, exclude_groups)
    chosen = BackupSettings(
        client=client,
        folder=folder,
        selection=selection,
        segment_format=segment_format,
        with_groups=not no_groups,
        with_access=not no_access,
        skips_leaderless=skips_leaderless,
    )
    with ProgressLines() as lines:
        work = Backup(chosen, say=lines.print_line, show=lines.show)
        with stop_on_signals(work.stop):
            report = work.run()
    if in_json:
        echo(json.dumps(report._asdict()))
    else:
        echo(
            f"{format_count(report.records, 'record')} of {format_count(report.topics, 'topic')} and the offsets of "
            f"{format_count(report.groups, 'group')} backed up ({format_size(report.size_bytes)}); the backup has "
            f"{format_count(report.total_records, 'record')}"
        )
    if not report.is_complete:
        echo(f"stopped: ottla backup create {folder} continues", err=True)
        raise click.Abort
    if report.skipped:
        raise click.ClickException(f"{describe_skipped(report.skipped)}; run the command again when they have one")


@backup.command("verify")
@present_folder
@json_option
def verify(folder: Path, in_json: bool) -> None:
    """Read every file of a backup, and compare it with the checksums of its manifest."""
    from ottla.backup import BackupFolder, verify_backup

    with ProgressLines() as lines:
        result = verify_backup(BackupFolder(folder), show=lines.show)
    if in_json:
        echo(json.dumps(result._asdict()))
    else:
        for problem in result.problems:
            echo(escape_controls(problem))
        if not result.problems:
            echo(f"checked {format_count(result.records, 'record')} in {format_count(result.files, 'file')}: no damage")
    if result.problems:
        raise click.ClickException(f"damaged files: {len(result.problems)} of {result.files}")
    if result.skipped:
        raise click.ClickException(describe_skipped(result.skipped))


@backup.command("show")
@present_folder
@json_option
def show_contents(folder: Path, in_json: bool) -> None:
    """Print the contents of a backup: topics, groups, and when it was made."""
    from ottla.backup import BackupFolder

    manifest = BackupFolder(folder).read_manifest()
    if in_json:
        echo(json.dumps(summarize(manifest), indent=2))
        return
    show(CONTENTS, list(topic_rows(manifest)), in_json=False)
    last = manifest.runs[-1]
    echo(
        f"cluster {escape_controls(manifest.cluster_id or '-')}, {format_count(len(manifest.runs), 'run')}, the last "
        f"from {format_time(last.started_ms)}; {format_count(len(manifest.groups), 'group')}, "
        f"{format_count(count(manifest.access_rules), 'access rule')}, {format_count(count(manifest.quotas), 'quota')}"
    )
    if manifest.skipped:
        echo(describe_skipped(manifest.skipped))


def topic_rows(manifest: Manifest) -> Iterator[tuple[Any, ...]]:
    """Yield a row for each topic."""
    for name, topic in sorted(manifest.topics.items()):
        records = sum(partition.records for partition in topic.partitions)
        size = sum(segment.size_bytes for partition in topic.partitions for segment in partition.segments)
        offsets = ", ".join(f"{partition.start}-{partition.end}" for partition in topic.partitions[:3])
        more = ", …" if len(topic.partitions) > 3 else ""
        yield name, len(topic.partitions), records, format_size(size), offsets + more


def summarize(manifest: Manifest) -> dict[str, Any]:
    """Return the contents of a backup for JSON, without its files."""
    from msgspec import to_builtins

    return {
        "backup_id": manifest.backup_id,
        "cluster_id": manifest.cluster_id,
        "format": manifest.segment_format,
        "records": manifest.records,
        "size_bytes": manifest.size_bytes,
        "skipped": manifest.skipped,
        "runs": to_builtins(manifest.runs),
        "topics": {
            name: {
                "replication_factor": topic.replication_factor,
                "configs": topic.configs,
                "partitions": [{"start": p.start, "end": p.end, "records": p.records} for p in topic.partitions],
            }
            for name, topic in manifest.topics.items()
        },
        "groups": to_builtins(manifest.groups),
        "access_rules": to_builtins(manifest.access_rules),
        "quotas": to_builtins(manifest.quotas),
        "users": manifest.users,
    }


def selection_of(
    topics: tuple[str, ...], exclude: tuple[str, ...], groups: tuple[str, ...], exclude_groups: tuple[str, ...]
) -> Any:
    """Return the selection of the options, or None without any."""
    from ottla.backup import Selection

    if not (topics or exclude or groups or exclude_groups):
        return None
    return Selection(topics or (".*",), exclude, groups or (".*",), exclude_groups)


def describe_skipped(skipped: tuple[str, ...]) -> str:
    """Return a sentence about partitions that the last run of a backup skipped."""
    return f"the backup is incomplete: {format_count(len(skipped), 'partition')} without a leader skipped: {', '.join(skipped)}"


def count(items: list[Any] | None) -> int:
    return 0 if items is None else len(items)


def format_time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
