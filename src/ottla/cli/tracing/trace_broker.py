"""`ottla trace broker`: the internals of a running broker, read from its trace socket."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from ottla.cli.live import LiveView
from ottla.cli.options import json_lines_option, usage_error
from ottla.cli.output import echo
from ottla.tracing.greeting import connect_and_read_hello

UPDATE_SECONDS = 0.1
"""The longest wait for a line before the remaining time is checked."""
PATIENCE_SECONDS = 5.0
"""The timeout for a broker's greeting."""
FREQUENT = ("WaitBegun", "WaitOver")
"""Events that the time line leaves out by default."""


@click.command()
@click.argument("node", metavar="[ID]", type=int, required=False)
@click.option(
    "--trace",
    "folder",
    metavar="FOLDER",
    envvar="OTTLA_TRACE",
    required=True,
    help="The folder that the broker was started with: ottla broker --trace FOLDER.",
)
@click.option("--events", is_flag=True, help="Show every event, including each waiting fetch.")
@click.option("--seconds", type=click.FloatRange(0), help="End after this time; default: at Ctrl-C.")
@json_lines_option
def broker(node: int | None, folder: str, events: bool, seconds: float | None, in_json: bool) -> None:
    """Show the internals of the broker ID: groups, waiting requests, logs, replicas, the cleaner.

    Works for Ottla's brokers on this machine, run by the same user. ID may be omitted if there is only one.
    In a terminal the view is redrawn and has keys (? lists them); elsewhere it prints a line for each event.
    """
    from ottla.cli.tracing.broker_picture import draw_broker

    seen: dict[str, Any] = {}
    view = LiveView(lambda whole: draw_broker(seen, whole=whole), in_json=in_json)
    with choose_broker(open_brokers(Path(folder)), node, folder) as connection, view.open():
        for frame in iter_frames(connection, seconds, view):
            seen.update(frame["snapshot"] or {})
            for event in frame["events"]:
                if events or event["event"] not in FREQUENT:
                    view.add_event(**event)
            if seen:
                view.refresh()


def open_brokers(folder: Path) -> dict[int, socket.socket]:
    """Connect to each trace socket in the folder; return the connections by broker id."""
    found: dict[int, socket.socket] = {}
    for path in sorted(folder.glob("broker-*.sock")):
        with suppress(OSError, ValueError):  # the socket of a process that was killed
            connection, hello = connect_and_read_hello(path, PATIENCE_SECONDS)
            try:
                found[int(hello["client_id"].removeprefix("broker "))] = connection
            except ValueError:  # the socket of a client
                connection.close()
    return found


def choose_broker(brokers: Mapping[int, socket.socket], node: int | None, folder: str) -> socket.socket:
    """Return the connection of the requested broker, and close the others."""
    if not brokers:
        raise click.ClickException(
            f"no broker has a trace socket in {folder!r}; start one with: ottla broker --trace {folder}"
        )
    if node is None and len(brokers) > 1:
        raise usage_error(
            f"there are several brokers in {folder!r}: give one of {', '.join(map(str, sorted(brokers)))}"
        )
    wanted = next(iter(brokers)) if node is None else node
    for id_, connection in brokers.items():
        if id_ != wanted:
            connection.close()
    if wanted not in brokers:
        raise click.ClickException(
            f"broker {wanted} is not in {folder!r}; there are {', '.join(map(str, sorted(brokers)))}"
        )
    return brokers[wanted]


def iter_frames(connection: socket.socket, seconds: float | None, view: LiveView) -> Iterator[Any]:
    """Yield the broker's frames until it ends, the time is up or the user quits."""
    connection.settimeout(UPDATE_SECONDS)
    end = time.monotonic() + (float("inf") if seconds is None else seconds)
    rest = b""
    while time.monotonic() < end and not view.has_ended:
        try:
            chunk = connection.recv(1 << 16)
        except TimeoutError:
            continue
        if not chunk:
            echo("the broker has stopped", err=True)
            return
        *lines, rest = (rest + chunk).split(b"\n")
        yield from map(json.loads, lines)
