"""The check of the files that a data directory has next to its partitions."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.directory.meta_properties import FILE_NAME as META
from ottla.storage.directory.offset_checkpoints import RECOVERY_POINTS
from ottla.storage.inspection import find
from tests.storage.no_files import in_the_place_of


@pytest.mark.parametrize("kind", ["a folder", "a pipe", "a socket", "a device"])
@pytest.mark.parametrize("name", [META, RECOVERY_POINTS])
def test_an_entry_that_is_not_a_file_is_reported_without_blocking(tmp_path: Path, name: str, kind: str) -> None:
    DataDirectory.open(tmp_path, node_id=1).close()
    in_the_place_of(tmp_path / name, kind)
    (fault,) = [fault for check in find(tmp_path).run(lambda size: None) for fault in check.faults]
    assert fault.file == tmp_path / name
    assert f"it is {kind}, where a file belongs" in fault.reason
