"""`ottla mirror`: copy topics of one cluster to another."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ottla.cli.contexts.contexts import contexts_file, read_contexts
from ottla.cli.options import properties_of, settings_of_context, suppress_repeated_logs, usage_error
from ottla.cli.output import echo
from ottla.cli.progress_lines import ProgressLines
from ottla.escaping import escape_controls

if TYPE_CHECKING:
    from ottla.mirror import MirrorSettings
    from ottla.mirror.group_plan import GroupPlan

F = TypeVar("F", bound=Callable[..., Any])


def side_options(side: str) -> Callable[[F], F]:
    """Return a decorator that adds `--SIDE-server`, `--SIDE-context` and `--SIDE-config`."""
    options = (
        click.option(f"--{side}-server", metavar="HOST:PORT", help=f"A broker of the {side} cluster."),
        click.option(f"--{side}-context", metavar="NAME", help=f"The {side} cluster by its name in ottla context."),
        click.option(
            f"--{side}-config",
            metavar="FILE",
            type=click.Path(),
            help=f"A properties file with settings of the {side}'s clients, such as the login.",
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
@click.option("--exclude", metavar="PATTERN", multiple=True, help="Topics to exclude; may be repeated.")
@click.option("--groups", metavar="PATTERN", multiple=True, help="Copy only the offsets of these groups.")
@click.option("--exclude-groups", metavar="PATTERN", multiple=True, help="Do not copy the offsets of these groups.")
@click.option("--no-groups", is_flag=True, help="Do not copy offsets of groups.")
@click.option("--no-configs", is_flag=True, help="Do not copy configs of topics.")
@click.option("--prefix", metavar="TEXT", default="", help="Prefix of the topics' names in the target.")
@click.option("--once", is_flag=True, help="End at the topics' present ends instead of following them.")
@click.option("--name", metavar="NAME", help="Identity of this mirror in the target. Default: the source's cluster id.")
@click.option("--replication-factor", type=click.IntRange(1), help="Replication factor of created topics.")
@click.option(
    "--refresh",
    metavar="SECONDS",
    type=click.FloatRange(0.1),
    default=10.0,
    show_default=True,
    help="Interval at which topics, partitions, configs and offsets of groups are compared.",
)
@click.option("--json", "in_json", is_flag=True, help="Print the result as JSON at the end.")
def mirror(in_json: bool, **given: Any) -> None:
    """Copy topics, their configs and the offsets of groups from one cluster to another.

    TOPIC is a name or a regular expression for whole names; without any, all topics that are not internal are copied.
    Each record is copied exactly once, to the partition with the same number, with its key, headers and timestamp. An
    interrupted mirror continues when it is started again. Nothing is deleted from the target.
    """
    from ottla.client.process.stop_signals import stop_on_signals
    from ottla.mirror import Mirror

    settings = settings_of(given)
    if settings.once:
        suppress_repeated_logs()
    with ProgressLines() as lines:
        work = Mirror(settings, report_line=lines.print_line, show=lines.show)
        with stop_on_signals(work.stop):
            report = work.run()
    if in_json:
        groups = {name: {"committed": len(it.offsets), "repeats": it.repeats} for name, it in work.groups.items()}
        echo(json.dumps({"records": report.records, "rest": report.remaining, "groups": groups}))
    else:
        echo(f"{report.records} records copied, {report.remaining} remaining")
        for line in group_lines(work.groups):
            echo(line)
    if work.stopping:
        raise click.Abort


def settings_of(given: dict[str, Any]) -> MirrorSettings:
    """Return the settings of the mirror; an invalid pattern is a usage error."""
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
        raise usage_error(
            f"--{side}-server and --{side}-context both give the address of the {side}: give only one of them"
        )
    settings: dict[str, Any] = {}
    if context is not None:
        known = read_contexts(contexts_file()).get(context, f"--{side}-context")
        settings = settings_of_context(known, with_file=file is None)
        server = known.bootstrap_servers
    settings.update(properties_of(f"--{side}-config", file))
    if server is not None:
        settings["bootstrap.servers"] = server
    if "bootstrap.servers" not in settings:
        raise usage_error(
            f"no address of the {side}: expected --{side}-server HOST:PORT, --{side}-context NAME or --{side}-config FILE"
        )
    return settings


def group_lines(groups: Mapping[str, GroupPlan]) -> Iterator[str]:
    """Yield a line per group about its position after the move."""
    for name, plan in groups.items():
        again = f"reads at most {plan.repeats} offsets again" if plan.repeats else "continues without repetition"
        yield f"group {escape_controls(name)} {again}"
