"""`ottla cluster start`: brokers and their controllers on this machine, until Ctrl-C or SIGTERM."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType
from typing import TYPE_CHECKING

import click

from ottla.cli.options import DEFAULT_ADDRESS, pairs_of, read_as_usage, set_option
from ottla.cli.output import echo

if TYPE_CHECKING:
    from ottla import Cluster

LOOK_SECONDS = 0.5


@click.command()
@click.argument("brokers", type=int, default=3)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default=DEFAULT_ADDRESS,
    show_default=True,
    help="Where the first broker listens; the others have the ports after it. Port 0 for free ones.",
)
@click.option(
    "--data-dir",
    metavar="DIR",
    help="Where everything is kept, and found again by the next start. Without it a temporary directory that goes with the cluster.",
)
@set_option("brokers")
def start(brokers: int, listen: str, data_dir: str | None, settings: tuple[str, ...]) -> None:
    """Run a cluster of BROKERS (3) on this machine until Ctrl-C or SIGTERM.

    Each broker is a process of its own, and votes on who decides. Prints `ready HOST:PORT` on standard output for each when all answer.
    """
    from ottla import Cluster

    over = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        over.set()

    given = pairs_of("--set", settings)
    with read_as_usage():
        cluster = Cluster(brokers, data_dir=data_dir, listen=listen, **given)
    if data_dir is None:
        note("no --data-dir, so topics go when the cluster ends")
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # as Ctrl-C, while nodes start
    with cluster:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, end)
        say_ready(cluster)
        watch(cluster, over)
        note("stopping")


def say_ready(cluster: Cluster) -> None:
    print(*(f"ready {address}" for address in cluster.addresses.values()), sep="\n", flush=True)
    processes = ", ".join(f"node {node} is process {cluster.pid(node)}" for node in cluster.running)
    note(f"{processes}; ottla cluster describe shows who leads, Ctrl-C ends them all")


def watch(cluster: Cluster, over: threading.Event) -> None:
    """Say of each node once that it has ended, until all is over."""
    known = set(cluster.nodes)
    while not over.wait(LOOK_SECONDS):
        for node in known - set(cluster.running):
            note(f"node {node} has ended; the others go on as long as they are a majority")
            known.discard(node)
        if not known:
            raise click.ClickException("all nodes have ended")


def note(sentence: str) -> None:
    """Tell the person who starts it."""
    echo(f"ottla cluster: {sentence}", err=True)
