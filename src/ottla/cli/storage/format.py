"""`ottla storage format`: write a directory's node id, cluster id, voters and first metadata before the first start."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ottla.cli.options import level_of, pairs_of, read_as_usage, usage_error
from ottla.cli.output import echo

if TYPE_CHECKING:
    from ottla.broker.settings.config import BrokerConfig


@click.command("format")
@click.option("--cluster-id", "-t", required=True, help="The id of the cluster: kafka-cluster cluster-id prints it.")
@click.option("--config", "-c", "file", required=True, metavar="FILE", help="The node's server.properties.")
@click.option(
    "--standalone",
    "-s",
    is_flag=True,
    help="Start with this controller as the only voter; implied for a broker that is a cluster by itself.",
)
@click.option(
    "--initial-controllers",
    "-I",
    metavar="ID@HOST:PORT:DIRECTORY_ID,…",
    help="The first voters, the same list on each; ottla storage random-uuid creates ids.",
)
@click.option("--no-initial-controllers", "-N", is_flag=True, help="This node is not one of the first voters.")
@click.option(
    "--release-version",
    "-r",
    "release",
    metavar="VERSION",
    help="Start a new cluster with the features of that Kafka release, 3.7 to 4.4.",
)
@click.option(
    "--feature",
    "-f",
    "features",
    metavar="NAME=LEVEL",
    multiple=True,
    help="Start a new cluster with that level of a feature; may be repeated.",
)
@click.option(
    "--add-scram",
    "-S",
    "passwords",
    metavar="SCRAM-SHA-256=[name=…,password=…]",
    multiple=True,
    help="Create a user in a new cluster, or -512; iterations=… is optional; may be repeated.",
)
@click.option("--ignore-formatted", "-g", is_flag=True, help="Skip directories that are formatted already.")
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
    """Format the directories of a node: write the cluster id, the node id, the voters and the first metadata."""
    from ottla.broker.controller import formatting
    from ottla.broker.settings.quorum_settings import read_initial_controllers
    from ottla.broker.settings.sources import read_sources
    from ottla.clock import SystemClock

    with read_as_usage():
        config = read_sources({}, os.environ, file).config
    alone = not (config.joins_cluster or config.is_controller)
    if alone:
        check_lone(config, file, initial_controllers, no_initial_controllers)
    else:
        check_voters(config, standalone, initial_controllers, no_initial_controllers)
    clock = SystemClock()
    with read_as_usage():
        wishes = {name: level_of("--feature", name, level) for name, level in pairs_of("--feature", features).items()}
        fixed = bool(config.controller_quorum_voters) and not alone
        first = formatting.build_bootstrap_records(release, wishes, passwords, fixed_voters=fixed)
        formatted = formatting.formatted_already(config, cluster_id)
        if (standalone or initial_controllers) and not alone and formatting.has_no_voters(config):
            raise usage_error(
                f"{config.metadata_directory} was formatted without voters, and now voters are given: empty it, or use "
                "--no-initial-controllers"
            )
        skip_formatted(formatted, agreed=ignore_formatted)
        if config.metadata_directory in formatted:
            formatting.format_other_directories(config, cluster_id, formatted)
        else:
            if standalone and not alone:
                formatting.format_standalone(config, cluster_id, clock, first)
            elif initial_controllers:
                voters = read_initial_controllers(initial_controllers)
                formatting.format_initial(config, cluster_id, voters, clock, first)
            else:
                formatting.format_without_voters(config, cluster_id, clock, first)
    made = [each for each in formatting.list_directories(config) if each not in formatted]
    if made:
        echo(f"formatted {','.join(made)} for node {config.node_id} of cluster {cluster_id}")


def check_lone(config: BrokerConfig, file: str, initial: str | None, none: bool) -> None:
    """Reject options that make no sense for a broker that is a cluster by itself.

    It is the only voter, and this is not stored before it starts.
    """
    if initial or none:
        raise usage_error(
            f"{file} configures a broker that is a cluster by itself, with one voter: use --standalone, or set "
            "process.roles=broker and controller.quorum.bootstrap.servers=HOST:PORT for one that joins a cluster"
        )
    if not config.log_dirs:
        raise usage_error(f"{file}: log.dirs is not set: expected the broker's data directories")


def check_voters(config: BrokerConfig, standalone: bool, initial: str | None, none: bool) -> None:
    """Reject options that do not define the voters, or define them twice."""
    ways = [standalone, bool(initial), none]
    controls = config.is_controller or config.has_both_roles
    if not controls:
        check_broker(*ways)
        return
    fixed = bool(config.controller_quorum_voters)
    if fixed and any(ways):
        raise usage_error(
            "controller.quorum.voters defines the voters: omit it, or omit --standalone and similar options"
        )
    if not fixed and sum(ways) != 1:
        raise usage_error(
            "no voters given: use one of --standalone, --initial-controllers and --no-initial-controllers, or set "
            "controller.quorum.voters"
        )


def check_broker(standalone: bool, initial: bool, none: bool) -> None:
    """Reject voters for a node that is only a broker."""
    if standalone or initial:
        wrong = "--standalone" if standalone else "--initial-controllers"
        raise usage_error(
            f"{wrong}: a broker is not a controller: omit the option, or set process.roles=broker,controller"
        )


def skip_formatted(formatted: Sequence[str], *, agreed: bool) -> None:
    """Report directories that are skipped; raise a usage error if that is not allowed."""
    for each in formatted:
        if not agreed:
            raise usage_error(
                f"{each} is formatted already, see its meta.properties: choose another, or skip it with --ignore-formatted"
            )
        echo(f"skipped {each}: it is formatted already")
