"""Folders that go with all that is in them, also where a link leads to them: a person may have moved one to another disk."""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path

LOG = logging.getLogger(__name__)


def remove_tree(folder: Path) -> None:
    """Remove what can be removed; the rest is told, and is there for whoever tries again. Nothing where nothing is."""
    place = Path(os.path.realpath(folder))
    shutil.rmtree(place, ignore_errors=True)
    try:
        if place.exists():
            shutil.rmtree(place)  # which now says why
        if folder.is_symlink():
            folder.unlink()
    except FileNotFoundError:
        pass  # Another has removed it meanwhile.
    except OSError as error:
        LOG.error("%s is not needed any more and stays: cannot remove %s: %s", folder, error.filename, error.strerror)
