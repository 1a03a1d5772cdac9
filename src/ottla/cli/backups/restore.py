"""`ottla restore`: restore a backup into a cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ottla.cli.backups.backup import ANSWER_MS, describe_skipped, present_folder, selection_of, selection_options
from ottla.cli.counts import format_count
from ottla.cli.options import bootstrap_server, client_settings, json_option, pairs_of, read_as_usage, settings_option
from ottla.cli.output import echo
from ottla.cli.progress_lines import ProgressLines


@click.command()
@present_folder
@click.argument("topics", metavar="[TOPIC...]", nargs=-1)
@bootstrap_server
@selection_options("restore")
@click.option("--prefix", metavar="TEXT", default="", help="Prefix of the topics' names in the target.")
@click.option(
    "--offsets",
    "offset_policy",
    type=click.Choice(["keep", "require", "renumber"]),
    default="keep",
    show_default=True,
    help="keep: up to the first gap; require: end with an error if a partition has gaps; renumber: start at 0.",
)
@click.option("--only-groups", is_flag=True, help="Restore only the offsets of groups, after the records.")
@click.option("--no-configs", is_flag=True, help="Do not restore configs of topics.")
@click.option(
    "--topic-config",
    "topic_configs",
    metavar="KEY=VALUE",
    multiple=True,
    help="A config of all restored topics, such as retention.ms=-1; may be repeated.",
)
@click.option("--with-access", is_flag=True, help="Restore access rules and quotas too.")
@click.option("--replication-factor", type=click.IntRange(1), help="Replication factor of created topics.")
@json_option
@settings_option("client")
def restore(
    folder: Path,
    topics: tuple[str, ...],
    bootstrap_server: str,
    exclude: tuple[str, ...],
    groups: tuple[str, ...],
    exclude_groups: tuple[str, ...],
    no_groups: bool,
    no_configs: bool,
    topic_configs: tuple[str, ...],
    in_json: bool,
    settings: tuple[str, ...],
    **others: Any,
) -> None:
    """Restore the backup in DIR, or some of its topics, into a cluster.

    Topics are created. A topic that exists must be empty, or contain the beginning of the backup: then what is missing is
    added, so that the same command continues an interrupted restore and brings a copy up to date. Records keep
    partition, key, value, headers and timestamp. The offsets of groups are translated where those of records change.
    """
    from ottla.backup import Restore, RestoreSettings, Selection
    from ottla.client.process.stop_signals import stop_on_signals

    with read_as_usage():
        client = client_settings(bootstrap_server, settings, default_api_timeout_ms=ANSWER_MS)
        selection = selection_of(topics, exclude, groups, exclude_groups) or Selection()
    chosen = RestoreSettings(
        client=client,
        folder=folder,
        selection=selection,
        with_configs=not no_configs,
        topic_configs=pairs_of("--topic-config", topic_configs),
        with_groups=not no_groups,
        **others,
    )
    with ProgressLines() as lines:
        work = Restore(chosen, say=lines.print_line, show=lines.show)
        with stop_on_signals(work.stop):
            report = work.run()
    if in_json:
        echo(json.dumps({**report._asdict(), "renumbered": [str(tp) for tp in report.renumbered]}))
    else:
        echo(
            f"{format_count(report.records, 'record')} of {format_count(report.topics, 'topic')} and the offsets of "
            f"{format_count(report.groups, 'group')} restored"
        )
        if report.renumbered:
            echo(
                f"records of {len(report.renumbered)} partitions have other offsets than before, such as "
                f"{report.renumbered[0]}; the offsets of groups are translated"
            )
        if others["with_access"]:
            echo(f"{report.access_rules} access rules and {report.quotas} quotas restored")
    if report.skipped:
        echo(describe_skipped(report.skipped), err=True)
    if not report.is_complete:
        echo(f"stopped: the same command continues the restore of {folder}", err=True)
        raise click.Abort
