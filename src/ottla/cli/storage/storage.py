"""`ottla storage`: a data directory for a broker of a cluster, or for a controller, in the words of Kafka's `kafka-storage`."""

from __future__ import annotations

import click

from ottla.cli.output import echo
from ottla.cli.storage.format import format_directory
from ottla.cli.storage.info import info


@click.group()
def storage() -> None:
    """Format the data directory of a broker that joins a cluster, or of a controller, and look whose one is."""


@storage.command("random-uuid")
def random_uuid() -> None:
    """Print an id that a new cluster could have."""
    from ottla.storage.directory.meta_properties import random_id

    echo(random_id())


storage.add_command(format_directory)
storage.add_command(info)
