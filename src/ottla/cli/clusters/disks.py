"""`ottla cluster log-dirs`: what is on the brokers' disks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import click

from ottla.cli.options import bootstrap_server, json_option, settings_option
from ottla.cli.tables import format_size, show
from ottla.cli.topics import admin_at

if TYPE_CHECKING:
    from ottla.client.admin import LogDirDescription

DIRECTORIES = ("BROKER", "DIRECTORY", "COPIES", "SIZE", "FREE", "TOTAL", "MAX-LAG")
COPIES = ("PARTITION", "BROKER", "SIZE", "LAG", "FUTURE", "DIRECTORY")
Size = Callable[[int | None], object]


@click.command("log-dirs")
@bootstrap_server
@click.option("--broker", "brokers", metavar="ID", type=click.IntRange(0), multiple=True, help="Only this broker.")
@click.option("-t", "--topic", "topics", metavar="TOPIC", multiple=True, help="Show the replicas of this topic.")
@json_option
@settings_option("client")
def log_dirs(
    bootstrap_server: str, brokers: tuple[int, ...], topics: tuple[str, ...], in_json: bool, settings: tuple[str, ...]
) -> None:
    """Print the log directories of brokers and their sizes; with --topic, the replicas of topics, the largest first.

    With --json, sizes are in bytes.
    """
    with admin_at(bootstrap_server, settings) as admin:
        if topics:
            admin.describe_topics(topics)  # raises an error if a topic does not exist
        found = admin.describe_log_dirs(brokers or None)
    size = bytes_themselves if in_json else format_size
    if topics:
        show(COPIES, copy_rows(found, topics, size), in_json=in_json)
    else:
        show(DIRECTORIES, directory_rows(found, size), in_json=in_json)


def directory_rows(found: Mapping[int, Mapping[str, LogDirDescription]], size: Size) -> list[tuple[object, ...]]:
    """Return one row per directory."""
    rows: list[tuple[object, ...]] = []
    for broker, directories in sorted(found.items()):
        for path, directory in sorted(directories.items()):
            copies = directory.replica_infos.values()
            sizes = (sum(copy.size for copy in copies), directory.usable_bytes, directory.total_bytes)
            lag = max((copy.offset_lag for copy in copies), default=0)
            count = len(copies) if directory.error is None else "offline"
            rows.append((broker, path, count, *map(size, sizes), lag))
    return rows


def copy_rows(
    found: Mapping[int, Mapping[str, LogDirDescription]], topics: Iterable[str], size: Size
) -> list[tuple[object, ...]]:
    """Return one row per replica of these topics."""
    wanted = set(topics)
    copies = [
        (copy.size, tp, broker, copy, path)
        for broker, directories in found.items()
        for path, directory in directories.items()
        for tp, copy in directory.replica_infos.items()
        if tp.topic in wanted
    ]
    copies.sort(key=lambda each: (-each[0], each[1], each[2]))
    return [(tp, broker, size(n), copy.offset_lag, copy.is_future, path) for n, tp, broker, copy, path in copies]


def bytes_themselves(count: int | None) -> object:
    return count
