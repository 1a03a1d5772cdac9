"""`ottla storage info`: whose the directories of a node are."""

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
    """Print of which node and cluster a node's directories are, and what is wrong with them; then it ends with 1."""
    from ottla.broker.settings.sources import gather

    with read_as_usage():
        config = gather({}, os.environ, file).config
    rows = rows_of(config)
    show(COLUMNS, rows, in_json=in_json)
    if any(problem for *_, problem in rows):
        raise SystemExit(1)


def rows_of(config: BrokerConfig) -> list[Row]:
    """A row for each directory; they must be of one cluster, that of the first."""
    from ottla.broker.controllers.formatting import directories_of

    rows: list[Row] = []
    cluster_id: str | None = None
    for directory in directories_of(config):
        rows.append(row_of(directory, config.node_id, cluster_id))
        cluster_id = cluster_id or rows[-1][2]
    return rows


def row_of(directory: str, node_id: int, cluster_id: str | None) -> Row:
    """What a directory says of itself, as far as it says anything."""
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
    return (directory, found.node_id, found.cluster_id, found.directory_id, misfit(found, node_id, cluster_id))


def misfit(found: MetaProperties, node_id: int, cluster_id: str | None) -> str | None:
    """Why a node cannot use a directory that is formatted; None where it can."""
    if found.node_id != node_id:
        return f"is of node {found.node_id}, and node.id is {node_id}"
    if cluster_id is not None and found.cluster_id != cluster_id:
        return f"is of another cluster than the first, which is of {cluster_id}"
    return None
