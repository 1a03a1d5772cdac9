"""`ottla broker`: run a broker in this process until Ctrl-C or SIGTERM."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

import click

from ottla.cli.json_log import configure_logging, format_message
from ottla.cli.options import DEFAULT_ADDRESS, pairs_of, read_as_usage, settings_option, usage_error
from ottla.cli.output import echo
from ottla.settings_class import changed
from ottla.uncollected import uncollected

if TYPE_CHECKING:
    from ottla.broker.serve import Serves
    from ottla.broker.settings.config import BrokerConfig
    from ottla.cli.console_process import ChildServer

REGISTRY_NAME = "registry"
LIFECYCLE = "ottla.broker.lifecycle"
"""The logger of starts and stops. A node with a file of settings logs them, so that its log shows each restart."""
DIRECTORIES = f"{LIFECYCLE}.directories"
"""The logger of new data directories. Its lines are shown at any level of the log."""
LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)


@click.command()
@click.option(
    "--listen",
    metavar="[NAME://]HOST:PORT",
    multiple=True,
    help=f"Address to listen on; port 0 selects a free one; may be repeated.  [default: {DEFAULT_ADDRESS}]",
)
@click.option(
    "--data-dir",
    metavar="DIR",
    help="Directory of the topics, created if missing. Default: a temporary directory, deleted at the end.",
)
@click.option(
    "--config",
    "file",
    metavar="FILE",
    help="File of settings, as Kafka's server.properties. Overridden by variables such as "
    "OTTLA_NUM_PARTITIONS=3, and these by --set.",
)
@click.option(
    "--add-scram",
    metavar="MECHANISM=[…]",
    multiple=True,
    help="Add a user, in the syntax of Kafka's tools: 'SCRAM-SHA-512=[name=alice,password=…]'; may be "
    "repeated. A user that exists already keeps its password.",
)
@click.option(
    "--metrics",
    metavar="HOST:PORT",
    help="Serve /metrics for Prometheus, /healthz and /readyz over HTTP; needs pip install 'ottla[metrics]'.",
)
@click.option(
    "--trace",
    metavar="FOLDER",
    envvar="OTTLA_TRACE",
    help="Publish internal events on a socket in FOLDER for this user's ottla trace broker and the console's X-ray.",
)
@click.option(
    "--console",
    metavar="HOST:PORT",
    help="Serve the web console for this broker from a child process; port 0 selects a free one.",
)
@click.option(
    "--registry",
    metavar="HOST:PORT",
    help="Run a schema registry for this broker in a child process; port 0 selects a free one.",
)
@click.option("--request-log", metavar="FILE", help="Append a JSON line for each request; - is standard error.")
@click.option(
    "--log-format",
    type=click.Choice(("text", "json")),
    default="text",
    show_default=True,
    help="Format of log events on standard error; json: a line with at, level, logger, message and exception.",
)
@click.option(
    "--ready-line",
    metavar="TEXT",
    multiple=True,
    help="A further line to print when the broker accepts requests, for programs that wait for it; may be repeated.",
)
@settings_option("broker")
@click.option("--verbose", "-v", count=True, help="Log more to standard error; -vv logs each request.")
def broker(
    listen: tuple[str, ...],
    data_dir: str | None,
    file: str | None,
    add_scram: tuple[str, ...],
    metrics: str | None,
    trace: str | None,
    console: str | None,
    registry: str | None,
    request_log: str | None,
    log_format: str,
    ready_line: tuple[str, ...],
    settings: tuple[str, ...],
    verbose: int,
) -> None:
    """Run a broker until Ctrl-C or SIGTERM.

    When it accepts requests, it prints `ready HOST:PORT` on standard output for each listener, and further lines for a console and a registry.
    """
    with uncollected():
        from ottla.broker.serve import serve
        from ottla.broker.settings.sources import read_sources

    configure_logging(LEVELS[min(verbose, 2)], log_format)
    logging.getLogger(DIRECTORIES).setLevel(logging.INFO)
    if file is not None:
        logging.getLogger(LIFECYCLE).setLevel(logging.INFO)
    given = pairs_of("--set", settings)
    if data_dir == "":
        raise usage_error("--data-dir is empty: expected a directory; omit the option to use a temporary one")
    for option, name, value in (
        ("--listen", "listeners", ",".join(listen) if listen else None),
        ("--data-dir", "log.dirs", data_dir),
        ("--add-scram", "add.scram", "\n".join(add_scram) if add_scram else None),
        ("--metrics", "metrics.listen", metrics),
        ("--trace", "trace.folder", trace),
        ("--request-log", "request.log", request_log),
    ):
        if value is not None and given.setdefault(name, value) != value:
            raise usage_error(f"{option} and --set {name} have different values: give only one of them")
    with read_as_usage():
        config, without_effect, warnings = read_sources(given, os.environ, file)
    for warning in warnings:
        print_notice(warning, log_format)
    if without_effect:
        print_notice(f"settings without effect in this broker: {', '.join(without_effect)}", log_format)
    if not config.log_dirs:
        missing = "no --data-dir" if file is None else f"neither log.dirs in {file} nor --data-dir"
        print_notice(f"{missing}: topics are deleted when the broker stops", log_format)

    with start_children(config, console, registry) as children:
        registry_url = children[REGISTRY_NAME].url if REGISTRY_NAME in children else None
        if registry_url is not None and not config.schema_registry_url:
            config = changed(config, schema_registry_url=(registry_url,))

        def ready(server: Serves) -> None:
            print_ready(server)
            show_children(children, server, registry_url)
            print(*ready_line, sep="\n", end="\n" if ready_line else "", flush=True)
            notify_service_manager(os.environ, "READY=1")

        serve(config, ready)


@contextmanager
def start_children(
    config: BrokerConfig, console: str | None, registry: str | None
) -> Iterator[Mapping[str, ChildServer]]:
    """Start a web console and a schema registry in child processes if their addresses are given. Yield them by name."""
    if console is None and registry is None:
        yield {}
        return
    from ottla.cli.console_process import CONSOLE, REGISTRY, ChildServer

    with ExitStack() as children, read_as_usage():
        started = {}
        for kind, place in ((CONSOLE, console), (REGISTRY, registry)):
            if place is not None:
                started[kind.noun] = ChildServer(kind, place, config)
                children.callback(started[kind.noun].close)
        yield started


def show_children(children: Mapping[str, ChildServer], server: Serves, registry_url: str | None) -> None:
    """Print the address of each child process."""
    for child in children.values():
        child.show(server.addresses, registry_url)


def print_notice(sentence: str, log_format: str) -> None:
    """Print a warning for the person that starts the broker."""
    echo(format_message(__name__, sentence) if log_format == "json" else f"ottla broker: {sentence}", err=True)


def print_ready(server: Serves) -> None:
    """Print one line per listener, in their configured order."""
    print(*(f"ready {address}" for address in server.addresses.values()), sep="\n", flush=True)


def notify_service_manager(environment: Mapping[str, str], state: str) -> None:
    """Send a state such as READY=1 to the service manager, if one waits for it (sd_notify of systemd)."""
    address = environment.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.sendto(state.encode(), address.replace("@", "\0", 1) if address.startswith("@") else address)
