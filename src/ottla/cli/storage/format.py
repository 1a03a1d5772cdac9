"""`ottla storage format`: whose a directory is, who votes, and with what a new cluster begins; told once, before the first start."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ottla.cli.options import level_of, pairs_of, read_as_usage, senseless
from ottla.cli.output import echo

if TYPE_CHECKING:
    from ottla.broker.settings.config import BrokerConfig


@click.command("format")
@click.option("--cluster-id", "-t", required=True, help="The id of the cluster: kafka-cluster cluster-id tells it.")
@click.option("--config", "-c", "file", required=True, metavar="FILE", help="The node's server.properties.")
@click.option(
    "--standalone",
    "-s",
    is_flag=True,
    help="A controller that votes alone to begin with; a broker that is a cluster by itself is one with or without it.",
)
@click.option(
    "--initial-controllers",
    "-I",
    metavar="ID@HOST:PORT:DIRECTORY_ID,…",
    help="The controllers that vote from the beginning, the same for each; ottla storage random-uuid draws ids.",
)
@click.option(
    "--no-initial-controllers", "-N", is_flag=True, help="The cluster has its controllers, and this is none of them."
)
@click.option(
    "--release-version",
    "-r",
    "release",
    metavar="VERSION",
    help="A new cluster begins with the features of that Kafka, 3.7 to 4.3, as far as they are here.",
)
@click.option(
    "--feature",
    "-f",
    "features",
    metavar="NAME=LEVEL",
    multiple=True,
    help="A new cluster begins with that level of a feature; may be given several times.",
)
@click.option(
    "--add-scram",
    "-S",
    "passwords",
    metavar="SCRAM-SHA-256=[name=…,password=…]",
    multiple=True,
    help="A user whom a new cluster has, or -512; with iterations=… if you like; may be given several times.",
)
@click.option(
    "--ignore-formatted", "-g", is_flag=True, help="Leave directories that are formatted already as they are."
)
def format_directory(
    cluster_id: str,
    file: str,
    standalone: bool,
    initial_controllers: str | None,
    no_initial_controllers: bool,
    release: str | None,
    features: tuple[str, ...],
    passwords: tuple[str, ...],
    ignore_formatted: bool,
) -> None:
    """Write down for good of which cluster and node a directory is, who its controllers are, and how a cluster begins."""
    from ottla.broker.controllers import formatting
    from ottla.broker.controllers.first_records import first_records
    from ottla.broker.settings.quorum_settings import read_initial_controllers
    from ottla.broker.settings.sources import gather
    from ottla.clock import SystemClock

    with read_as_usage():
        config = gather({}, os.environ, file).config
    alone = not (config.joins or config.controls)
    if alone:
        check_lone(config, file, initial_controllers, no_initial_controllers)
    else:
        check_voters(config, standalone, initial_controllers, no_initial_controllers)
    clock = SystemClock()
    with read_as_usage():
        wishes = {name: level_of("--feature", name, level) for name, level in pairs_of("--feature", features).items()}
        fixed = bool(config.controller_quorum_voters) and not alone
        first = first_records(release, wishes, passwords, fixed_voters=fixed)
        formatted = formatting.formatted_already(config, cluster_id)
        if (standalone or initial_controllers) and not alone and formatting.has_no_voters(config):
            raise senseless(
                f"{config.metadata_directory} was formatted without voters, and they are named now: empty it, or leave them out "
                "with --no-initial-controllers"
            )
        pass_over(formatted, agreed=ignore_formatted)
        if config.metadata_directory in formatted:
            formatting.format_others(config, cluster_id, formatted)
        else:
            if standalone and not alone:
                formatting.format_standalone(config, cluster_id, clock, first)
            elif initial_controllers:
                voters = read_initial_controllers(initial_controllers)
                formatting.format_initial(config, cluster_id, voters, clock, first)
            else:
                formatting.format_without_voters(config, cluster_id, clock, first)
    made = [each for each in formatting.directories_of(config) if each not in formatted]
    if made:
        echo(f"formatted {','.join(made)} for node {config.node_id} of cluster {cluster_id}")


def check_lone(config: BrokerConfig, file: str, initial: str | None, none: bool) -> None:
    """Refuse what makes no sense for a broker that is a cluster by itself: it votes alone, and that is not written down before it starts."""
    if initial or none:
        raise senseless(
            f"{file} is that of a broker that is a cluster by itself, which votes alone: give --standalone, or set "
            "process.roles=broker and controller.quorum.bootstrap.servers=HOST:PORT for one that joins a cluster"
        )
    if not config.log_dirs:
        raise senseless(f"{file}: log.dirs is empty: say where the broker is to keep what it has")


def check_voters(config: BrokerConfig, standalone: bool, initial: str | None, none: bool) -> None:
    """Refuse what leaves open who votes, or says it twice."""
    ways = [standalone, bool(initial), none]
    controls = config.controls or config.combines
    if not controls:
        check_broker(*ways)
        return
    fixed = bool(config.controller_quorum_voters)
    if fixed and any(ways):
        raise senseless("controller.quorum.voters says who votes: leave that out, or --standalone and its like")
    if not fixed and sum(ways) != 1:
        raise senseless(
            "who votes? Give one of --standalone, --initial-controllers and --no-initial-controllers (others add this one), or set "
            "controller.quorum.voters"
        )


def check_broker(standalone: bool, initial: bool, none: bool) -> None:
    """Refuse controllers that a broker would have to bring."""
    if standalone or initial:
        wrong = "--standalone" if standalone else "--initial-controllers"
        raise senseless(
            f"{wrong}: a broker brings no controllers, the cluster has its own; leave that out, or set process.roles=broker,controller"
        )


def pass_over(formatted: Sequence[str], *, agreed: bool) -> None:
    """Say which directories are left as they are, if they may be."""
    for each in formatted:
        if not agreed:
            raise senseless(
                f"{each} is formatted already, see its meta.properties: choose another, or leave it as it is by --ignore-formatted"
            )
        echo(f"left {each} as it is: it is formatted already")
