"""`ottla mirror`: one cluster's topics in another."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ottla.cli.contexts.contexts import contexts_file, read_contexts
from ottla.cli.mirroring.lines import MirrorLines, group_lines
from ottla.cli.options import hush_log, properties_of, senseless, settings_of_context
from ottla.cli.output import echo

if TYPE_CHECKING:
    from ottla.mirror import MirrorSettings

F = TypeVar("F", bound=Callable[..., Any])


def side_options(side: str) -> Callable[[F], F]:
    """`--source-server`, `--source-context`, `--source-config`, and the same of the target."""
    options = (
        click.option(f"--{side}-server", metavar="HOST:PORT", help=f"A broker of the {side} to start from."),
        click.option(f"--{side}-context", metavar="NAME", help=f"The {side} by its name, as ottla context keeps it."),
        click.option(
            f"--{side}-config",
            metavar="FILE",
            type=click.Path(),
            help=f"A properties file with settings of the clients at the {side}, such as how to log in.",
        ),
    )

    def with_options(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return with_options


@click.command()
@click.argument("topics", metavar="[TOPIC...]", nargs=-1)
@side_options("source")
@side_options("target")
@click.option("--exclude", metavar="PATTERN", multiple=True, help="Topics to leave out; may be given several times.")
@click.option("--groups", metavar="PATTERN", multiple=True, help="Only the offsets of these groups.")
@click.option("--exclude-groups", metavar="PATTERN", multiple=True, help="Not the offsets of these groups.")
@click.option("--no-groups", is_flag=True, help="No offsets of groups.")
@click.option("--no-configs", is_flag=True, help="No configs of topics.")
@click.option("--prefix", metavar="TEXT", default="", help="What topics are called in the target begins with this.")
@click.option("--once", is_flag=True, help="End where the topics ended at the start, instead of going on.")
@click.option("--name", metavar="NAME", help="Who this mirror is to the target; left out, the id of the source.")
@click.option("--replication-factor", type=click.IntRange(1), help="Of topics that are made.")
@click.option(
    "--refresh",
    metavar="SECONDS",
    type=click.FloatRange(0.1),
    default=10.0,
    show_default=True,
    help="How often new topics, partitions, configs and offsets of groups are looked for.",
)
@click.option("--json", "in_json", is_flag=True, help="What was done as JSON, at the end.")
def mirror(in_json: bool, **given: Any) -> None:
    """Carry topics, their configs and the offsets of groups from one cluster to another.

    TOPIC is a name or a regular expression for whole names; without any it is every topic that is not internal.
    Each record is carried once, to the partition of the same number, with its key, headers and time, whatever ends the
    command between: started again, it goes on. Nothing is taken away from the target.
    """
    from ottla.client.process.stop_signals import stopped_by_signals
    from ottla.mirror import Mirror

    settings = settings_of(given)
    if settings.once:
        hush_log()
    with MirrorLines() as lines:
        work = Mirror(settings, tell=lines.tell, show=lines.show)
        with stopped_by_signals(work.stop):
            standing = work.run()
    if in_json:
        groups = {name: {"committed": len(it.offsets), "repeats": it.repeats} for name, it in work.groups.items()}
        echo(json.dumps({"records": standing.records, "rest": standing.rest, "groups": groups}))
    else:
        echo(f"{standing.records} records carried, {standing.rest} to go")
        for line in group_lines(work.groups):
            echo(line)
    if work.stopping:
        raise click.Abort


def settings_of(given: dict[str, Any]) -> MirrorSettings:
    """A pattern that is none is a mistake in the command."""
    from ottla.cli.options import read_as_usage
    from ottla.mirror import MirrorSettings, Selection

    with read_as_usage():
        selection = Selection(
            topics=given["topics"] or (".*",),
            without_topics=given["exclude"],
            groups=given["groups"] or (".*",),
            without_groups=given["exclude_groups"],
            prefix=given["prefix"],
        )
    return MirrorSettings(
        source=mirror_side("source", given["source_server"], given["source_context"], given["source_config"]),
        target=mirror_side("target", given["target_server"], given["target_context"], given["target_config"]),
        selection=selection,
        name=given["name"],
        once=given["once"],
        refresh_seconds=given["refresh"],
        replication_factor=given["replication_factor"] or -1,
        with_configs=not given["no_configs"],
        with_groups=not given["no_groups"],
    )


def mirror_side(side: str, server: str | None, context: str | None, file: str | None) -> dict[str, Any]:
    """Return the settings of the clients of one cluster; a server option overrides the file's."""
    if server is not None and context is not None:
        raise senseless(f"--{side}-server and --{side}-context both say where the {side} is; give one")
    settings: dict[str, Any] = {}
    if context is not None:
        known = read_contexts(contexts_file()).named(context, f"--{side}-context")
        settings = settings_of_context(known, with_file=file is None)
        server = known.bootstrap_servers
    settings.update(properties_of(f"--{side}-config", file))
    if server is not None:
        settings["bootstrap.servers"] = server
    if "bootstrap.servers" not in settings:
        raise senseless(
            f"say where the {side} is: --{side}-server HOST:PORT, --{side}-context NAME or --{side}-config FILE"
        )
    return settings
