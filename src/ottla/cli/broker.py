"""`ottla broker`: a broker in this process, until Ctrl-C or SIGTERM."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from ottla.cli.json_log import begin_log, say
from ottla.cli.options import DEFAULT_ADDRESS, pairs_of, read_as_usage, senseless, settings_option
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
    help=f"Where to listen; port 0 takes a free one; may be given several times.  [default: {DEFAULT_ADDRESS}]",
)
@click.option(
    "--data-dir",
    metavar="DIR",
    help="Where topics are kept; made if it is not there. Without it a temporary directory that goes with the broker.",
)
@click.option(
    "--config",
    "file",
    metavar="FILE",
    help="Settings in the syntax of Kafka's server.properties. Before it count variables such as "
    "OTTLA_NUM_PARTITIONS=3, and before these --set.",
)
@click.option(
    "--add-scram",
    metavar="MECHANISM=[…]",
    multiple=True,
    help="A user to begin with, as Kafka's tools have it: 'SCRAM-SHA-512=[name=alice,password=…]'; may be given several "
    "times. Who has a password already keeps it.",
)
@click.option(
    "--metrics",
    metavar="HOST:PORT",
    help="Answer /metrics for Prometheus, /healthz and /readyz over HTTP there; needs pip install 'ottla[metrics]'.",
)
@click.option(
    "--trace",
    metavar="FOLDER",
    envvar="OTTLA_TRACE",
    help="Let others of this user look inside, by a socket in FOLDER: ottla trace broker, the console's X-ray.",
)
@click.option(
    "--console",
    metavar="HOST:PORT",
    help="Show this broker on a page there, in a process beside it that ends with it: ottla console; port 0 for a free one.",
)
@click.option("--request-log", metavar="FILE", help="Append a line of JSON for each request; - is standard error.")
@click.option(
    "--log-format",
    type=click.Choice(("text", "json")),
    default="text",
    show_default=True,
    help="How each event is written to standard error; json: a line with at, level, logger, message and exception.",
)
@settings_option("broker")
@click.option("--verbose", "-v", count=True, help="Say more on standard error; -vv has a line for each request.")
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

    Prints `ready HOST:PORT` on standard output when it answers, a line for each listener, and `ready http://…` for a console.
    """
    with uncollected():
        from ottla.broker.serve import serve
        from ottla.broker.settings.sources import gather

    begin_log(LEVELS[min(verbose, 2)], log_format)
    given = pairs_of("--set", settings)
    if data_dir == "":
        raise senseless("--data-dir is empty: name a directory, or leave it out for a temporary one")
    for option, name, value in (
        ("--listen", "listeners", ",".join(listen) if listen else None),
        ("--data-dir", "log.dirs", data_dir),
        ("--add-scram", "add.scram", "\n".join(add_scram) if add_scram else None),
        ("--metrics", "metrics.listen", metrics),
        ("--trace", "trace.folder", trace),
        ("--request-log", "request.log", request_log),
    ):
        if value is not None and given.setdefault(name, value) != value:
            raise senseless(f"{option} and --set {name} say different things; give one")
    with read_as_usage():
        config, without_effect, warnings = gather(given, os.environ, file)
    for warning in warnings:
        note(warning, log_format)
    if without_effect:
        note(f"without effect here: {', '.join(without_effect)}", log_format)
    if not config.log_dirs:
        note("no --data-dir, so topics go when the broker ends", log_format)

    with console_of(config, console) as show:

        def ready(server: Serves) -> None:
            say_ready(server)
            show(server.addresses)

        serve(config, ready)


@contextmanager
def console_of(config: BrokerConfig, place: str | None) -> Iterator[Callable[[Mapping[str, str]], None]]:
    """A console beside the broker, if one is wanted, which goes with it; what is to be told of the broker's addresses."""
    if place is None:
        yield lambda addresses: None
        return
    from ottla.cli.console_beside import ConsoleBeside

    with read_as_usage():
        beside = ConsoleBeside(place, config)
    try:
        yield beside.show
    finally:
        beside.close()


def note(sentence: str, log_format: str) -> None:
    """Tell the person who starts the broker."""
    echo(say(__name__, sentence) if log_format == "json" else f"ottla broker: {sentence}", err=True)


def say_ready(server: Serves) -> None:
    """A line for each listener, in the order in which they were given."""
    print(*(f"ready {address}" for address in server.addresses.values()), sep="\n", flush=True)
