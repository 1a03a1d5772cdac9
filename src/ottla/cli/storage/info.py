"""`ottla storage info`: the cluster and node ids of a node's directories."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ottla.cli.options import json_option, read_as_usage
from ottla.cli.tables import show
from ottla.errors import ConfigError

if TYPE_CHECKING:
    from ottla.broker.settings.config import BrokerConfig
    from ottla.storage.directory.meta_properties import MetaProperties

COLUMNS = ("DIRECTORY", "NODE", "CLUSTER", "DIRECTORY-ID", "PROBLEM")
Row = tuple[str, int | None, str | None, str | None, str | None]


@click.command("info")
@click.option("--config", "-c", "file", required=True, metavar="FILE", help="The node's server.properties.")
@json_option
def info(file: str, in_json: bool) -> None:
    """Print the node and cluster of a node's directories, and their problems.

    The exit status is 1 if there is a problem.
    """
    from ottla.broker.settings.sources import read_sources

    with read_as_usage():
        config = read_sources({}, os.environ, file).config
    rows = rows_of(config)
    show(COLUMNS, rows, in_json=in_json)
    if any(problem for *_, problem in rows):
        raise SystemExit(1)


def rows_of(config: BrokerConfig) -> list[Row]:
    """Return one row per directory; all must belong to the cluster of the first."""
    from ottla.broker.controller.formatting import list_directories

    rows: list[Row] = []
    cluster_id: str | None = None
    for directory in list_directories(config):
        rows.append(row_of(directory, config.node_id, cluster_id))
        cluster_id = cluster_id or rows[-1][2]
    return rows


def row_of(directory: str, node_id: int, cluster_id: str | None) -> Row:
    """Return the row of a directory from its meta.properties."""
    from ottla.storage.directory.meta_properties import FILE_NAME, MetaProperties

    path = Path(directory)
    if not path.is_dir():
        return (directory, None, None, None, "is not a directory" if path.exists() else "does not exist")
    if not (path / FILE_NAME).exists():
        return (directory, None, None, None, "is not formatted")
    try:
        found = MetaProperties.parse(path / FILE_NAME)
    except (ConfigError, OSError) as error:
        return (directory, None, None, None, str(error))
    return (directory, found.node_id, found.cluster_id, found.directory_id, find_mismatch(found, node_id, cluster_id))


def find_mismatch(found: MetaProperties, node_id: int, cluster_id: str | None) -> str | None:
    """Return the reason why a node cannot use a formatted directory, or None."""
    if found.node_id != node_id:
        return f"belongs to node {found.node_id}, but node.id is {node_id}"
    if cluster_id is not None and found.cluster_id != cluster_id:
        return f"belongs to another cluster than the first directory, {cluster_id}"
    return None
