"""`ottla broker`: run a broker in this process until Ctrl-C or SIGTERM."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from ottla.cli.json_log import configure_logging, format_message
from ottla.cli.options import DEFAULT_ADDRESS, pairs_of, read_as_usage, settings_option, usage_error
from ottla.cli.output import echo
from ottla.uncollected import uncollected

if TYPE_CHECKING:
    from ottla.broker.serve import Serves
    from ottla.broker.settings.config import BrokerConfig

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
@click.option("--request-log", metavar="FILE", help="Append a JSON line for each request; - is standard error.")
@click.option(
    "--log-format",
    type=click.Choice(("text", "json")),
    default="text",
    show_default=True,
    help="Format of log events on standard error; json: a line with at, level, logger, message and exception.",
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
    request_log: str | None,
    log_format: str,
    settings: tuple[str, ...],
    verbose: int,
) -> None:
    """Run a broker until Ctrl-C or SIGTERM.

    When it accepts requests, it prints `ready HOST:PORT` on standard output for each listener, and `ready http://…` for a console.
    """
    with uncollected():
        from ottla.broker.serve import serve
        from ottla.broker.settings.sources import read_sources

    configure_logging(LEVELS[min(verbose, 2)], log_format)
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
        print_notice("no --data-dir: topics are deleted when the broker stops", log_format)

    with start_console(config, console) as show:

        def ready(server: Serves) -> None:
            print_ready(server)
            show(server.addresses)

        serve(config, ready)


@contextmanager
def start_console(config: BrokerConfig, place: str | None) -> Iterator[Callable[[Mapping[str, str]], None]]:
    """Start a web console in a child process if `place` is given.

    Yield the function that passes it the broker's addresses.
    """
    if place is None:
        yield lambda addresses: None
        return
    from ottla.cli.console_process import ConsoleProcess

    with read_as_usage():
        beside = ConsoleProcess(place, config)
    try:
        yield beside.show
    finally:
        beside.close()


def print_notice(sentence: str, log_format: str) -> None:
    """Print a warning for the person that starts the broker."""
    echo(format_message(__name__, sentence) if log_format == "json" else f"ottla broker: {sentence}", err=True)


def print_ready(server: Serves) -> None:
    """Print one line per listener, in their configured order."""
    print(*(f"ready {address}" for address in server.addresses.values()), sep="\n", flush=True)
