"""`ottla storage`: a data directory for a broker of a cluster, or for a controller, in the words of Kafka's `kafka-storage`."""

from __future__ import annotations

import os

import click

from ottla.cli.options import read_as_usage, senseless


@click.group()
def storage() -> None:
    """Format the data directory of a broker that joins a cluster, or of a controller."""


@storage.command("random-uuid")
def random_uuid() -> None:
    """Print an id that a new cluster could have."""
    from ottla.storage.directory.meta_properties import random_id

    click.echo(random_id())


@storage.command("format")
@click.option("--cluster-id", "-t", required=True, help="The id of the cluster: kafka-cluster cluster-id tells it.")
@click.option("--config", "-c", "file", required=True, metavar="FILE", help="The node's server.properties.")
@click.option("--standalone", "-s", is_flag=True, help="A controller that votes alone to begin with.")
@click.option(
    "--initial-controllers",
    "-I",
    metavar="ID@HOST:PORT:DIRECTORY_ID,…",
    help="The controllers that vote from the beginning, the same for each; ottla storage random-uuid draws ids.",
)
@click.option(
    "--no-initial-controllers", "-N", is_flag=True, help="The cluster has its controllers, and this is none of them."
)
def format_directory(
    cluster_id: str, file: str, standalone: bool, initial_controllers: str | None, no_initial_controllers: bool
) -> None:
    """Write down for good of which cluster and node a directory is, and who its controllers are."""
    from ottla.broker.controllers import formatting
    from ottla.broker.settings.quorum_settings import read_initial_controllers
    from ottla.broker.settings.sources import gather
    from ottla.clock import SystemClock

    with read_as_usage():
        config = gather({}, os.environ, file).config
    if not (config.joins or config.controls):
        raise senseless(
            f"{file} is not that of a broker that joins a cluster, nor of a controller: it needs process.roles=broker and "
            "controller.quorum.bootstrap.servers=HOST:PORT, process.roles=controller, or both roles and the addresses of several controllers; a broker that is a cluster by itself "
            "formats its own directory"
        )
    ways = [bool(each) for each in (standalone, initial_controllers, no_initial_controllers)]
    controls = config.controls or config.combines
    if not controls and ways != [False, False, True]:
        raise senseless("--no-initial-controllers is missing: a broker brings no controllers, the cluster has its own")
    fixed = controls and bool(config.controller_quorum_voters)
    if fixed and any(ways):
        raise senseless("controller.quorum.voters says who votes: leave that out, or --standalone and its like")
    if not fixed and sum(ways) != 1:
        raise senseless(
            "who votes? Give one of --standalone, --initial-controllers and --no-initial-controllers (others add this one), or set "
            "controller.quorum.voters"
        )
    with read_as_usage():
        if standalone:
            meta = formatting.format_standalone(config, cluster_id, SystemClock())
        elif initial_controllers:
            voters = read_initial_controllers(initial_controllers)
            meta = formatting.format_initial(config, cluster_id, voters, SystemClock())
        else:
            meta = formatting.format_without_voters(config, cluster_id)
    click.echo(f"formatted {config.log_dirs} for node {meta.node_id} of cluster {meta.cluster_id}")
