"""`ottla storage`: data directories of brokers and controllers, with the options of Kafka's `kafka-storage`."""

from __future__ import annotations

import click

from ottla.cli.command_groups import CommandGroup
from ottla.cli.output import echo
from ottla.cli.storage.format import format_directory
from ottla.cli.storage.info import info


@click.group(cls=CommandGroup)
def storage() -> None:
    """Format and show the data directories of a broker that joins a cluster, or of a controller."""


@storage.command("random-uuid")
def random_uuid() -> None:
    """Print a random id for a new cluster."""
    from ottla.storage.directory.meta_properties import random_id

    echo(random_id())


storage.add_command(format_directory)
storage.add_command(info)
