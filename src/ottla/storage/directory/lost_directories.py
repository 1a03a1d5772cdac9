"""Lost directories that were replaced by new ones. Replicas that the metadata assign to a lost directory are not complete here yet.

lost-directories     an id on each line

A directory with `meta.properties` and no other file of a run was emptied, or never used. In both cases it differs from the directory with
that id in the cluster's metadata. So it gets a new id: the cluster must not expect its records or its vote there (KIP-853, KIP-858).
"""

from __future__ import annotations

import logging
from pathlib import Path
from uuid import UUID

from msgspec.structs import replace

from ottla.kafka_id import ID_TEXT, LAST_RESERVED, id_of, text_of
from ottla.storage.directory.meta_properties import FILE_NAME as META
from ottla.storage.directory.meta_properties import MetaProperties, random_id
from ottla.storage.files.durable import replace_file
from ottla.storage.files.regular_file import read_whole

LOG = logging.getLogger(__name__)
FILE_NAME = "lost-directories"
BOOTSTRAP = "bootstrap.checkpoint"
OF_NO_RUN = {META, BOOTSTRAP, FILE_NAME, ".lock", "lost+found"}
"""The files that a directory may have before a broker first uses it."""


class LostDirectories:
    """The ids of lost directories that were replaced by this one."""

    def __init__(self, path: Path) -> None:
        """`path` is the directory. Raises OSError if it cannot be read."""
        self._file = path / FILE_NAME
        text = read_whole(self._file).decode("ascii", "replace") if self._file.exists() else ""
        self._ids = {id_of(line) for line in text.split() if ID_TEXT.fullmatch(line)}

    def __contains__(self, directory: UUID) -> bool:
        return directory in self._ids

    def has_less_than(self, folder: Path, former: UUID) -> bool:
        """Return True if the replica in this folder, which need not exist, has fewer records than the replica in the lost directory `former`."""
        if former in self:
            return True
        if former <= LAST_RESERVED or folder.is_dir():
            return False
        LOG.warning(
            "copies start empty in %s: they were in directory %s, which is no longer present",
            folder.parent,
            text_of(former),
        )
        self.add(former)
        return True

    def add(self, directory: UUID) -> None:
        """Add the id of a lost directory; for this run even if it cannot be written to the disk."""
        self._ids.add(directory)
        try:
            replace_file(self._file, "".join(f"{text_of(each)}\n" for each in sorted(self._ids)))
        except OSError as error:
            LOG.error("%s cannot be written: %s", self._file, error)


def ensure_identity(path: Path, node_id: int, cluster_id: str | None) -> MetaProperties:
    """Return the properties as `MetaProperties.read_or_create` does. A directory with no other file gets a new id."""
    bare = is_bare(path)
    meta = MetaProperties.read_or_create(path, node_id, cluster_id)
    return renew_identity(path, meta) if bare else meta


def is_bare(path: Path) -> bool:
    """Return True if a directory has its properties and nothing else."""
    return (path / META).exists() and all(each.name in OF_NO_RUN for each in path.iterdir())


def renew_identity(path: Path, meta: MetaProperties) -> MetaProperties:
    """Give a directory without other files a new id, and return its properties. The old id is recorded first."""
    new = replace(meta, directory_id=random_id())
    LostDirectories(path).add(id_of(meta.directory_id))
    replace_file(path / META, new.text())
    LOG.log(
        logging.INFO if (path / BOOTSTRAP).exists() else logging.WARNING,
        "%s has nothing but its %s: it is taken for a new disk and has the directory.id %s from now on, not %s; what the cluster has is copied "
        "there from others, and where it voted by the old id it does not",
        path, META, new.directory_id, meta.directory_id,
    )  # fmt: skip
    return new
