"""`ottla console`: a cluster on a page for the browser."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ottla.cli.options import bootstrap_server, client_settings, of_an_admin, read_as_usage, senseless, settings_option
from ottla.cli.pipelines.desk import PipelineDesk

if TYPE_CHECKING:
    from ottla.console.server import Console

LISTEN = "127.0.0.1:8080"


@click.command()
@bootstrap_server
@click.option(
    "--listen", metavar="HOST:PORT", default=LISTEN, show_default=True, help="Where the page is; port 0 for a free one."
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
    host, port = place_of(listen)
    with read_as_usage():
        given = of_an_admin(client_settings(bootstrap_server, settings))
        from ottla.console.server import Console

        served = Console(given, host, port, trace, None if pipelines is None else PipelineDesk(pipelines))
    gc.freeze()  # what is loaded by now stays: the collector need not walk through it when a page of 10,000 topics is made
    served.run(say_ready)


def place_of(listen: str) -> tuple[str, int]:
    """Host and port; an address of IPv6 stands in brackets."""
    host, colon, port = listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise senseless(f"--listen {listen!r} must be HOST:PORT, such as {LISTEN}")
    return host, int(port)


def say_ready(served: Console) -> None:
    click.echo(f"ready {served.url}")
