"""`ottla storage`: a data directory for a broker of a cluster, in the words of Kafka's `kafka-storage`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from ottla.cli.options import read_as_usage, senseless


@click.group()
def storage() -> None:
    """Format the data directory of a broker that joins a cluster."""


@storage.command("random-uuid")
def random_uuid() -> None:
    """Print an id that a new cluster could have."""
    from ottla.storage.directory.meta_properties import random_id

    click.echo(random_id())


@storage.command("format")
@click.option("--cluster-id", "-t", required=True, help="The id of the cluster: kafka-cluster cluster-id tells it.")
@click.option("--config", "-c", "file", required=True, metavar="FILE", help="The broker's server.properties.")
@click.option(
    "--no-initial-controllers", is_flag=True, help="The cluster has its controllers, and this is none of them."
)
def format_directory(cluster_id: str, file: str, no_initial_controllers: bool) -> None:
    """Write down for good of which cluster and node a directory is."""
    from ottla.broker.settings.sources import gather
    from ottla.storage.directory.meta_properties import MetaProperties

    with read_as_usage():
        config = gather({}, os.environ, file).config
    if not config.joins:
        raise senseless(
            f"{file} is not that of a broker that joins a cluster: it needs process.roles=broker and "
            "controller.quorum.bootstrap.servers=HOST:PORT; a broker that is a cluster by itself formats its own directory"
        )
    if not no_initial_controllers:
        raise senseless("--no-initial-controllers is missing: a broker brings no controllers, the cluster has its own")
    with read_as_usage():
        meta = MetaProperties.format(Path(config.log_dirs).absolute(), config.node_id, cluster_id)
    click.echo(f"formatted {config.log_dirs} for node {meta.node_id} of cluster {meta.cluster_id}")
