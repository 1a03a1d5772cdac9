"""A file of fetched rows exists completely or not at all."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.pipelines.feeds.spool import Spool, SpoolError

SCHEMA = pa.schema([("n", pa.int64())])


def batch(*numbers: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"n": list(numbers)}, schema=SCHEMA)


def numbers(spool: Spool, name: str) -> list[int]:
    return [row["n"] for each in spool.read(name) for row in each.to_pylist()]


@given(st.lists(st.integers(0, 7), max_size=6), st.integers(1, 5))
def test_rows_are_shared_out_in_their_order(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], most: int
) -> None:
    spool = Spool(tmp_path_factory.mktemp("spool"), SCHEMA)
    files, count = spool.create_files(1, most), 0
    for size in sizes:
        files.write(batch(*range(count, count + size)))
        count += size
    found = [numbers(spool, name) for name in files.finish()]
    assert [one for rows in found for one in rows] == list(range(count))
    assert all(len(rows) == most for rows in found[:-1])


def test_an_abandoned_fetch_leaves_no_resources(tmp_path: Path) -> None:
    files = Spool(tmp_path, SCHEMA).create_files(1, 2)
    files.write(batch(1, 2, 3))
    files.abandon()
    assert list(tmp_path.iterdir()) == []


def test_files_up_to_a_batch_are_deleted_including_incomplete_ones(tmp_path: Path) -> None:
    spool = Spool(tmp_path, SCHEMA)
    unfinished = spool.create_files(1, 10)
    unfinished.write(batch(1))
    kept = []
    for number in (1, 2, 3):
        files = spool.create_files(number, 10)
        files.write(batch(number))
        kept += files.finish()
    spool.delete_up_to(2)
    assert [file.name for file in tmp_path.iterdir()] == kept[2:]


def test_two_processes_do_not_take_each_others_file(tmp_path: Path) -> None:
    spool = Spool(tmp_path, SCHEMA)
    one, other = spool.create_files(1, 10), spool.create_files(1, 10)
    one.write(batch(1))
    other.write(batch(2))
    (first,), (second,) = one.finish(), other.finish()
    assert (numbers(spool, first), numbers(spool, second)) == ([1], [2])


@pytest.mark.parametrize("keep", [0, 8, 100])
def test_a_file_that_is_cut_off_is_reported(tmp_path: Path, keep: int) -> None:
    spool = Spool(tmp_path, SCHEMA)
    files = spool.create_files(1, 10_000)
    files.write(batch(*range(1000)))
    (name,) = files.finish()
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:keep])
    with pytest.raises(SpoolError, match="cannot be read"):
        numbers(spool, name)


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SpoolError, match="cannot be written"):
        Spool(tmp_path / "file" / "spool", SCHEMA).create_files(1, 1).write(batch(1))
