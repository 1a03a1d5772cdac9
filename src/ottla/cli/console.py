"""`ottla console`: the web console of a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ottla.cli.options import (
    PAGE_ADDRESS,
    admin_settings,
    bootstrap_server,
    client_settings,
    place_of,
    read_as_usage,
    settings_option,
)
from ottla.cli.output import echo
from ottla.cli.pipelines.desk import PipelineDesk
from ottla.cli.records.registered import open_registry, registry_config_option, registry_option

if TYPE_CHECKING:
    from ottla.console.schema_registry import ConsoleRegistry
    from ottla.console.server import Console


@click.command()
@bootstrap_server
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default=PAGE_ADDRESS,
    show_default=True,
    help="Address of the web page; port 0 selects a free one.",
)
@click.option(
    "--trace",
    metavar="FOLDER",
    envvar="OTTLA_TRACE",
    help="Folder with the sockets of programs that run with OTTLA_TRACE=FOLDER.",
)
@click.option(
    "--pipelines",
    metavar="FILE|FOLDER",
    type=click.Path(exists=True, path_type=Path),
    help="Pipelines to show, as of ottla pipeline status.",
)
@registry_option
@registry_config_option
@settings_option("client")
def console(
    bootstrap_server: str,
    listen: str,
    trace: str | None,
    pipelines: Path | None,
    registry: str | None,
    registry_config: Path | None,
    settings: tuple[str, ...],
) -> None:
    """Serve a web page for a cluster until Ctrl-C: topics, records, groups, transactions, brokers, traced consumers.

    An address that other machines can reach requires a token, which is part of the printed address.
    """
    host, port = place_of("--listen", listen)
    with read_as_usage():
        given = admin_settings(client_settings(bootstrap_server, settings))
        from ottla.console.garbage import configure_collector
        from ottla.console.server import Console

        desk = None if pipelines is None else PipelineDesk(pipelines)
        served = Console(given, host, port, trace, desk, registry=console_registry(registry, registry_config))
    configure_collector()
    served.run(print_ready)


def console_registry(url: str | None, config: Path | None) -> ConsoleRegistry | None:
    """Return the registry for the options, None without them."""
    if url is None and config is None:
        return None
    from ottla.console.schema_registry import LIMITS, ConsoleRegistry

    return ConsoleRegistry(open_registry(url, config, LIMITS))


def print_ready(served: Console) -> None:
    echo(f"ready {served.url}")
