"""`ottla console`: a cluster on a page for the browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ottla.cli.options import (
    PAGE_ADDRESS,
    bootstrap_server,
    client_settings,
    of_an_admin,
    place_of,
    read_as_usage,
    settings_option,
)
from ottla.cli.output import echo
from ottla.cli.pipelines.desk import PipelineDesk

if TYPE_CHECKING:
    from ottla.console.server import Console


@click.command()
@bootstrap_server
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default=PAGE_ADDRESS,
    show_default=True,
    help="Where the page is; port 0 for a free one.",
)
@click.option("--trace", metavar="FOLDER", envvar="OTTLA_TRACE", help="Where programs with OTTLA_TRACE=FOLDER listen.")
@click.option(
    "--pipelines",
    metavar="FILE|FOLDER",
    type=click.Path(exists=True, path_type=Path),
    help="Pipelines to show, as of ottla pipeline status.",
)
@settings_option("client")
def console(
    bootstrap_server: str, listen: str, trace: str | None, pipelines: Path | None, settings: tuple[str, ...]
) -> None:
    """Show topics, records, groups, transactions and brokers of a cluster, and consumers from inside, on a page, until Ctrl-C.

    On an address that others reach it asks for a token, which is part of the address that is printed.
    """
    host, port = place_of("--listen", listen)
    with read_as_usage():
        given = of_an_admin(client_settings(bootstrap_server, settings))
        from ottla.console.garbage import spare_the_collector
        from ottla.console.server import Console

        served = Console(given, host, port, trace, None if pipelines is None else PipelineDesk(pipelines))
    spare_the_collector()
    served.run(say_ready)


def say_ready(served: Console) -> None:
    echo(f"ready {served.url}")
