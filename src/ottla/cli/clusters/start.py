"""`ottla cluster start`: run brokers with their controllers on this machine until Ctrl-C or SIGTERM."""

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

POLL_SECONDS = 0.5


@click.command()
@click.argument("brokers", type=int, default=3)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default=DEFAULT_ADDRESS,
    show_default=True,
    help="Address of the first broker; the others use the next ports. Port 0 selects free ones.",
)
@click.option(
    "--data-dir",
    metavar="DIR",
    help="Data directory, reused by the next start. Default: a temporary directory, deleted at the end.",
)
@set_option("brokers")
def start(brokers: int, listen: str, data_dir: str | None, settings: tuple[str, ...]) -> None:
    """Run a cluster of BROKERS (3) on this machine until Ctrl-C or SIGTERM.

    Each broker is a process of its own and also a controller. When all accept requests, `ready HOST:PORT` is printed on
    standard output for each.
    """
    from ottla import Cluster

    over = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        over.set()

    given = pairs_of("--set", settings)
    with read_as_usage():
        cluster = Cluster(brokers, data_dir=data_dir, listen=listen, **given)
    if data_dir is None:
        print_notice("no --data-dir: topics are deleted when the cluster stops")
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # as Ctrl-C, while nodes start
    with cluster:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, end)
        print_ready(cluster)
        watch(cluster, over)
        print_notice("stopping")


def print_ready(cluster: Cluster) -> None:
    print(*(f"ready {address}" for address in cluster.addresses.values()), sep="\n", flush=True)
    processes = ", ".join(f"node {node} is process {cluster.pid(node)}" for node in cluster.running)
    print_notice(f"{processes}; ottla cluster describe shows the leaders, Ctrl-C stops all")


def watch(cluster: Cluster, over: threading.Event) -> None:
    """Report each node that stops, once, until `over` is set; raise ClickException when all nodes have stopped."""
    known = set(cluster.nodes)
    while not over.wait(POLL_SECONDS):
        for node in known - set(cluster.running):
            print_notice(f"node {node} has stopped; the others continue as long as they are a majority")
            known.discard(node)
        if not known:
            raise click.ClickException("all nodes have stopped")


def print_notice(sentence: str) -> None:
    """Print a notice for the person that starts the cluster."""
    echo(f"ottla cluster: {sentence}", err=True)
