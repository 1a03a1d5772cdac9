"""`ottla trace broker`: a broker that lets others look, from inside, as it tells by its socket."""

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
from ottla.cli.options import json_lines_option, senseless
from ottla.cli.output import echo
from ottla.tracing.greeting import greeted

TURN_SECONDS = 0.1
"""How long it is waited for a line before the time that is left is looked at."""
PATIENCE_SECONDS = 5.0
"""How long a broker may take to say who it is."""
FREQUENT = ("WaitBegun", "WaitOver")
"""Events that a time line can do without."""


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
@click.option("--events", is_flag=True, help="Every event in the time line, each fetch that waits too.")
@click.option("--seconds", type=click.FloatRange(0), help="End after so long; otherwise with Ctrl-C.")
@json_lines_option
def broker(node: int | None, folder: str, events: bool, seconds: float | None, in_json: bool) -> None:
    """Show what goes on inside the broker ID: groups, who waits, logs, copies, the cleaner.

    Only Ottla's brokers can be looked into, on this machine and by their own user. ID may be left out where there is one.
    In a terminal a picture that is drawn anew, with keys (? tells them); elsewhere a line for each event.
    """
    from ottla.cli.tracing.broker_picture import picture

    seen: dict[str, Any] = {}
    view = LiveView(lambda whole: picture(seen, whole=whole), in_json=in_json)
    with chosen(open_brokers(Path(folder)), node, folder) as connection, view.open():
        for frame in frames(connection, seconds, view):
            seen.update(frame["snapshot"] or {})
            for event in frame["events"]:
                if events or event["event"] not in FREQUENT:
                    view.tell(**event)
            if seen:
                view.refresh()


def open_brokers(folder: Path) -> dict[int, socket.socket]:
    """The brokers that can be looked into, by their ids; each has said who it is."""
    found: dict[int, socket.socket] = {}
    for path in sorted(folder.glob("broker-*.sock")):
        with suppress(OSError, ValueError):  # of a process that was killed
            connection, hello = greeted(path, PATIENCE_SECONDS)
            try:
                found[int(hello["client_id"].removeprefix("broker "))] = connection
            except ValueError:  # somebody else's name
                connection.close()
    return found


def chosen(brokers: Mapping[int, socket.socket], node: int | None, folder: str) -> socket.socket:
    """The one that is meant; the others are let go."""
    if not brokers:
        raise click.ClickException(
            f"no broker lets you look into it in {folder!r}; start one with: ottla broker --trace {folder}"
        )
    if node is None and len(brokers) > 1:
        raise senseless(f"there are several brokers in {folder!r}; name one of {', '.join(map(str, sorted(brokers)))}")
    wanted = next(iter(brokers)) if node is None else node
    for id_, connection in brokers.items():
        if id_ != wanted:
            connection.close()
    if wanted not in brokers:
        raise click.ClickException(
            f"broker {wanted} is not in {folder!r}; there are {', '.join(map(str, sorted(brokers)))}"
        )
    return brokers[wanted]


def frames(connection: socket.socket, seconds: float | None, view: LiveView) -> Iterator[Any]:
    """What it tells, until it ends, the time is up or who looks has seen enough."""
    connection.settimeout(TURN_SECONDS)
    end = time.monotonic() + (float("inf") if seconds is None else seconds)
    rest = b""
    while time.monotonic() < end and not view.ended:
        try:
            chunk = connection.recv(1 << 16)
        except TimeoutError:
            continue
        if not chunk:
            echo("the broker has ended", err=True)
            return
        *lines, rest = (rest + chunk).split(b"\n")
        yield from map(json.loads, lines)
