"""Directories that are gone, in whose place one was begun anew: copies that the metadata say to lie there are not whole here yet.

lost-directories     an id on each line

A directory that has its `meta.properties` and nothing of what a run leaves was emptied, or never used. Either way it is another one than the
cluster may know by that id: it gets a new one, so that nobody takes it for what has the records, nor for who has promised a vote (KIP-853, KIP-858).
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
"""What a directory may have that no broker ever ran with."""


class LostDirectories:
    """Those whose copies were begun anew in one directory, by their ids."""

    def __init__(self, path: Path) -> None:
        """`path` is the directory; OSError where it cannot be read."""
        self._file = path / FILE_NAME
        text = read_whole(self._file).decode("ascii", "replace") if self._file.exists() else ""
        self._ids = {id_of(line) for line in text.split() if ID_TEXT.fullmatch(line)}

    def __contains__(self, directory: UUID) -> bool:
        return directory in self._ids

    def begins_anew(self, folder: Path, former: UUID) -> bool:
        """Whether the copy that has this folder, or will have it, is less than the one that was in a directory of another id."""
        if former in self:
            return True
        if former <= LAST_RESERVED or folder.is_dir():
            return False
        LOG.warning(
            "copies begin anew in %s: they were in directory %s, which is not here any more",
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


def identity_of(path: Path, node_id: int, cluster_id: str | None) -> MetaProperties:
    """As `MetaProperties.ensure`, with another id for a directory that is bare."""
    bare = is_bare(path)
    meta = MetaProperties.ensure(path, node_id, cluster_id)
    return renewed(path, meta) if bare else meta


def is_bare(path: Path) -> bool:
    """Whether a directory says whose it is, and has nothing else."""
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
