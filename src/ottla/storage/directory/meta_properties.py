"""The owner of a data directory: Kafka's `meta.properties`, version 1."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ottla.errors import ConfigError
from ottla.kafka_id import id_of, text_of
from ottla.storage.directory.privacy import make_private
from ottla.storage.files.durable import replace_file
from ottla.storage.files.regular_file import read_whole
from ottla.storage.segments.log_folder import partition_of

FILE_NAME = "meta.properties"
CLUSTER_ID = re.compile(r"[!-\[\]-~]+")
"""A cluster id as the file may contain it. Kafka generates 22 characters of base64 and accepts any text."""


class MetaProperties(Struct, frozen=True):
    """The node and the cluster that wrote a data directory."""

    node_id: int
    cluster_id: str
    directory_id: str
    """Empty if the file has none."""

    @classmethod
    def read_or_create(cls, directory: Path, node_id: int, cluster_id: str | None) -> MetaProperties:
        """Read the properties, or create new ones; ConfigError if the directory belongs to another node, cluster or version."""
        path = directory / FILE_NAME
        if not path.exists():
            ensure_empty(directory)
            new = cls(node_id, cluster_id or random_id(), random_id())
            replace_file(path, new.text())
            return new
        found = cls.read_formatted(directory, node_id, cluster_id)
        if not found.directory_id:
            # Kafka before 3.7 wrote no id. The new one is kept, because it identifies a voter at each start.
            found = replace(found, directory_id=random_id())
            replace_file(path, found.text())
        return found

    @classmethod
    def read_formatted(cls, directory: Path, node_id: int, cluster_id: str | None) -> MetaProperties:
        """Read the properties of a formatted directory; ConfigError if it belongs to another node, cluster or version."""
        found = cls.parse(directory / FILE_NAME)
        if found.node_id != node_id:
            raise ConfigError(
                f"data directory {directory} belongs to node {found.node_id}, this is node {node_id}: "
                f"start with node.id={found.node_id} or choose another directory"
            )
        if cluster_id is not None and found.cluster_id != cluster_id:
            raise ConfigError(
                f"data directory {directory} belongs to cluster {found.cluster_id}, not {cluster_id}: "
                "choose another directory"
            )
        return found

    @classmethod
    def ensure_formatted(cls, directory: Path) -> None:
        """Raise ConfigError if a directory is not formatted."""
        if not (directory / FILE_NAME).exists():
            if directory.is_dir():
                ensure_empty(directory)
            elif os.path.lexists(directory):
                raise ConfigError(f"data directory {directory} is no folder: move it away or choose another")
            raise ConfigError(
                f"{directory} has no {FILE_NAME}, so it is not known of which cluster it is: format it with "
                "`ottla storage format -t CLUSTER_ID -c FILE`, with --no-initial-controllers where it is a controller that others let in, also "
                "one whose disk was lost"
            )

    @classmethod
    def format(
        cls,
        directory: Path,
        node_id: int,
        cluster_id: str,
        directory_id: str | None = None,
        fill: Callable[[], None] | None = None,
    ) -> MetaProperties:
        """Write the properties of an empty directory; ConfigError if it is formatted or not empty.

        `directory_id` is given if the cluster's metadata already contain the id. `fill` writes the files that must exist before `meta.properties`.
        """
        if not CLUSTER_ID.fullmatch(cluster_id):
            raise ConfigError(
                f"the cluster id {cluster_id!r} cannot be: it needs characters of ASCII, without spaces and backslashes"
            )
        if (directory / FILE_NAME).exists():
            raise ConfigError(f"log directory {directory} is formatted already, see its {FILE_NAME}; choose another")
        make_private(directory)
        ensure_empty(directory)
        if fill is not None:
            fill()
        new = cls(node_id, cluster_id, directory_id or random_id())
        replace_file(directory / FILE_NAME, new.text())
        return new

    @classmethod
    def parse(cls, path: Path) -> MetaProperties:
        lines = [line.strip() for line in read_whole(path).decode(errors="replace").splitlines()]
        fields = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
        if fields.get("version", "1") != "1":
            raise ConfigError(
                f"{path} has version {fields['version']}, expected 1: it is not from Ottla or Kafka ≥ 3.3 "
                "in KRaft mode; choose another directory"
            )
        try:
            if "version" not in fields:
                raise ValueError("it has no version")
            if not fields["cluster.id"]:
                raise ValueError("it has no cluster.id")
            if fields.get("directory.id"):
                id_of(fields["directory.id"])
            return cls(int(fields["node.id"]), fields["cluster.id"], fields.get("directory.id", ""))
        except (KeyError, ValueError) as error:
            fault = f"it has no {error.args[0]}" if isinstance(error, KeyError) else str(error)
            raise ConfigError(
                f"{path} is damaged ({fault}): restore node.id, cluster.id, directory.id and version=1 by hand"
            ) from None

    def text(self) -> str:
        fields = {
            "cluster.id": self.cluster_id,
            "directory.id": self.directory_id,
            "node.id": self.node_id,
            "version": 1,
        }
        return "".join(f"{name}={value}\n" for name, value in fields.items())


def ensure_empty(directory: Path) -> None:
    """Raise ConfigError if a directory without properties contains partitions."""
    folder = next((path.name for path in directory.iterdir() if partition_of(path.name) and path.is_dir()), None)
    if folder is not None:
        raise ConfigError(
            f"{directory} holds logs, such as {folder}, and no {FILE_NAME}: restore that file from a backup, "
            "rewrite it with the lines version=1, node.id=…, cluster.id=… and, of a controller, directory.id=…, or choose another directory"
        )


def random_id() -> str:
    """Return a new id as Kafka creates them: none starts with a dash, which a command line would treat as an option."""
    text = text_of(uuid.uuid4())
    return random_id() if text.startswith("-") else text
