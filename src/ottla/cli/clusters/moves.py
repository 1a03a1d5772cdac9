"""`ottla cluster elect | reassign | reassignments`: change leaders and replicas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from ottla.cli.clusters.directory_moves import DIRECTORIES, move_directories, named_directories
from ottla.cli.clusters.move_plan import brokers_of, moves_of_file
from ottla.cli.consent import confirm, yes_option
from ottla.cli.options import bootstrap_server, chosen_partitions, json_option, settings_option, usage_error
from ottla.cli.output import echo
from ottla.cli.tables import format_table, show
from ottla.cli.topics import admin_at

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.model import TopicPartition

UNDER_WAY = ("PARTITION", "REPLICAS", "ADDING", "REMOVING")
PLAN = ("PARTITION", "FROM", "TO")
WISHES = "expected --topic with --to or with --broker and --log-dir, or --reassignment-json-file, or --cancel"


@click.command()
@bootstrap_server
@click.option(
    "-t", "--topic", "topics", metavar="TOPIC[:P,...]", multiple=True, help="A topic, or some of its partitions."
)
@click.option("--all-topic-partitions", "everything", is_flag=True, help="Every partition.")
@click.option(
    "--election-type",
    type=click.Choice(("preferred", "unclean"), case_sensitive=False),
    default="preferred",
    show_default=True,
    help="preferred: the first replica of the list; unclean: any online replica.",
)
@yes_option
@json_option
@settings_option("client")
def elect(
    bootstrap_server: str,
    topics: tuple[str, ...],
    everything: bool,
    election_type: str,
    agreed: bool,
    in_json: bool,
    settings: tuple[str, ...],
) -> None:
    """Elect the preferred leaders of partitions, and print the partitions that changed their leader.

    An unclean election makes a replica the leader that may lack records; these records are lost.
    """
    if bool(topics) == everything:
        raise usage_error("expected --topic (may be repeated) or --all-topic-partitions")
    with admin_at(bootstrap_server, settings) as admin:
        wanted = chosen_partitions(admin, topics) if topics else None
        if election_type == "unclean":
            confirm("Records that the new leaders lack will be lost. Elect?", agreed=agreed)
        elected = sorted(admin.elect_leaders(election_type.upper(), wanted))
        leaders = leaders_of(admin, elected)
    if not elected:
        echo("no election was needed: the leaders are already as requested", err=True)
    if elected or in_json:
        show(("PARTITION", "LEADER"), [(tp, leaders[tp]) for tp in elected], in_json=in_json)


@click.command()
@bootstrap_server
@click.option(
    "-t", "--topic", "topics", metavar="TOPIC[:P,...]", multiple=True, help="A topic, or some of its partitions."
)
@click.option("--to", "brokers", metavar="ID,...", help="The new replicas, the preferred leader first.")
@click.option(
    "--reassignment-json-file", "file", metavar="FILE", type=click.Path(), help="A plan of kafka-reassign-partitions."
)
@click.option("--broker", "holder", metavar="ID", type=click.IntRange(0), help="The broker of --log-dir.")
@click.option("--log-dir", "directory", metavar="DIR", help="Directory on that broker for its replicas of --topic.")
@click.option("--cancel", is_flag=True, help="Cancel running moves, of --topic or of all topics.")
@yes_option
@json_option
@settings_option("client")
def reassign(
    bootstrap_server: str,
    topics: tuple[str, ...],
    brokers: str | None,
    file: str | None,
    holder: int | None,
    directory: str | None,
    cancel: bool,
    agreed: bool,
    in_json: bool,
    settings: tuple[str, ...],
) -> None:
    """Start to move partitions to other brokers or to other directories. Show the plan and ask for confirmation first.

    With --json the plan is printed after the start. The moves continue after this command: see ottla cluster reassignments
    for moves between brokers, and log-dirs --topic for moves between directories.
    """
    asked = (brokers is not None, file is not None, directory is not None, cancel)
    named = brokers is not None or directory is not None
    if sum(asked) != 1 or (topics and file) or (named and not topics) or (holder is None) != (directory is None):
        raise usage_error(WISHES)
    to = brokers_of(brokers) if brokers is not None else ()
    plan = moves_of_file(file) if file is not None else {}
    planned = {tp: each.replicas for tp, each in plan.items()}
    with admin_at(bootstrap_server, settings) as admin:
        chosen = chosen_partitions(admin, topics) if topics else None
        if directory is not None and holder is not None:
            copies = {(tp, holder): directory for tp in chosen or ()}
            rows = move_directories(admin, copies, agreed=agreed, in_json=in_json)
            if in_json:
                show(DIRECTORIES, rows, in_json=True)
            return
        replicas_of(admin, planned)
        moved = move_directories(admin, named_directories(plan), agreed=agreed, in_json=in_json)
        under_way = admin.list_partition_reassignments(chosen) if cancel else {}
        wanted = {**planned, **dict.fromkeys(under_way, None), **dict.fromkeys(chosen or () if to else (), to)}
        now = replicas_of(admin, wanted)
        changed = {tp: then for tp, then in wanted.items() if then != now[tp]}
        if not changed and not moved:
            echo("nothing to move: the replicas are already as requested", err=True)
        elif changed:
            shown = [(tp, now[tp], target or "(stop)") for tp, target in sorted_plan(changed)]
            echo(format_table(PLAN, shown), err=in_json)
            confirm("Start?" if not cancel else "Stop these moves?", agreed=agreed)
            admin.alter_partition_reassignments(changed)
            click.echo(result_sentence(len(changed), cancel=cancel), err=True)
    if in_json:
        show(PLAN, [(tp, now[tp], target) for tp, target in sorted_plan(changed)], in_json=True)


@click.command()
@bootstrap_server
@json_option
@settings_option("client")
def reassignments(bootstrap_server: str, in_json: bool, settings: tuple[str, ...]) -> None:
    """Print the running moves."""
    with admin_at(bootstrap_server, settings) as admin:
        found = admin.list_partition_reassignments()
    rows = [(tp, m.replicas, m.adding_replicas, m.removing_replicas) for tp, m in sorted(found.items())]
    if rows or in_json:
        show(UNDER_WAY, rows, in_json=in_json)
    else:
        click.echo("no move is under way", err=True)


def result_sentence(count: int, *, cancel: bool) -> str:
    """Return the result of a reassignment and the command that shows its progress."""
    partitions = f"{count} partition{'s' * (count != 1)}"
    if cancel:
        return f"stopped the moves of {partitions}"
    return f"started for {partitions}; ottla cluster reassignments shows what is under way"


def sorted_plan(
    plan: Mapping[TopicPartition, Sequence[int] | None],
) -> list[tuple[TopicPartition, Sequence[int] | None]]:
    return sorted(plan.items(), key=lambda item: item[0])


def leaders_of(admin: Admin, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
    topics = admin.describe_topics({tp.topic for tp in partitions}).values()
    known = {(p.topic, p.partition): p.leader for topic in topics for p in topic.partitions}
    return {tp: known[tp] for tp in partitions}


def replicas_of(admin: Admin, partitions: Mapping[TopicPartition, object]) -> dict[TopicPartition, tuple[int, ...]]:
    """Return the current replicas of the partitions; raise ClickException if one does not exist."""
    topics = admin.describe_topics({tp.topic for tp in partitions}).values()
    known = {(p.topic, p.partition): p.replicas for topic in topics for p in topic.partitions}
    for tp in partitions:
        if tp not in known:
            raise click.ClickException(f"topic {tp.topic!r} has no partition {tp.partition}")
    return {tp: known[tp] for tp in partitions}
