"""`ottla mcp`: tools of a cluster for programs with language models."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ottla.cli.console import console_registry
from ottla.cli.options import (
    REFUSED_MS,
    admin_settings,
    bootstrap_server,
    client_settings,
    read_as_usage,
    settings_option,
)
from ottla.cli.records.registered import registry_config_option, registry_option
from ottla.extras import extra

AT_TERMINAL = (
    "a program with a language model starts this command, and sends requests to its standard input; stop with Ctrl-C"
)


@click.command()
@bootstrap_server
@click.option(
    "--allow-writes", is_flag=True, help="Also offer the tools that produce, create topics and reset offsets."
)
@registry_option
@registry_config_option
@settings_option("client")
def mcp(
    bootstrap_server: str,
    allow_writes: bool,
    registry: str | None,
    registry_config: Path | None,
    settings: tuple[str, ...],
) -> None:
    """Serve the tools of a cluster by the Model Context Protocol on standard input and output.

    The tools list and describe topics, groups with lag, configs and the cluster, read and search records within bounds, and
    explain rebalances; with --registry also schemas. Nothing is changed, unless --allow-writes is given. A program starts
    this command; its configuration has the command `ottla` and the arguments `mcp`, `-b`, `HOST:PORT`.
    """
    with read_as_usage():
        given = admin_settings(client_settings(bootstrap_server, settings, bootstrap_refused_timeout_ms=REFUSED_MS))
        with extra("mcp"):
            from ottla.mcp.server import serve_stdio
    if sys.stdin.isatty():
        print(f"ottla: {AT_TERMINAL}", file=sys.stderr)
    serve_stdio(given, console_registry(registry, registry_config), allow_writes=allow_writes)
