"""Lost directories that were replaced by new ones: copies that the metadata assign to them are not complete here yet.

lost-directories     an id on each line

A directory with `meta.properties` and no other file of a run was emptied, or never used. In both cases it differs from the directory that the
cluster may know by that id. So it gets a new id, and does not count as the one with the records or with a promised vote (KIP-853, KIP-858).
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
"""The files of a directory that no broker ever used."""


class LostDirectories:
    """The ids of lost directories that were replaced by this one."""

    def __init__(self, path: Path) -> None:
        """`path` is the directory; OSError where it cannot be read."""
        self._file = path / FILE_NAME
        text = read_whole(self._file).decode("ascii", "replace") if self._file.exists() else ""
        self._ids = {id_of(line) for line in text.split() if ID_TEXT.fullmatch(line)}

    def __contains__(self, directory: UUID) -> bool:
        return directory in self._ids

    def begins_anew(self, folder: Path, former: UUID) -> bool:
        """True if the copy with this folder, existing or not, has less than the one in the lost directory `former`."""
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
        """Remember it, for this run also where the disk does not take it."""
        self._ids.add(directory)
        try:
            replace_file(self._file, "".join(f"{text_of(each)}\n" for each in sorted(self._ids)))
        except OSError as error:
            LOG.error("%s cannot be written: %s", self._file, error)


def ensure_identity(path: Path, node_id: int, cluster_id: str | None) -> MetaProperties:
    """Return the properties as `MetaProperties.ensure` does, with a new id for a bare directory."""
    bare = is_bare(path)
    meta = MetaProperties.ensure(path, node_id, cluster_id)
    return renewed(path, meta) if bare else meta


def is_bare(path: Path) -> bool:
    """True if a directory has its properties and nothing else."""
    return (path / META).exists() and all(each.name in OF_NO_RUN for each in path.iterdir())


def renewed(path: Path, meta: MetaProperties) -> MetaProperties:
    """Another id for a directory that is bare."""
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
