"""The files of a backup: what is written is read, and a changed byte is found."""

from __future__ import annotations

from array import array
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.backup import BackupError, BackupFolder, Manifest, Selection, verify_backup
from ottla.backup.manifest import (
    FORMAT,
    VERSION,
    PartitionBackup,
    Run,
    SegmentFormat,
    TopicBackup,
    decode_manifest,
    encode_manifest,
)
from ottla.backup.segments import count_below, open_writer, read_records
from ottla.model import TimestampType
from ottla.records.binary_column import column_of
from ottla.records.columns import BatchRows, Columns
from ottla.records.headers import encode_headers

Row = tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]
KINDS: list[SegmentFormat] = ["log", "parquet"]
rows = st.lists(
    st.tuples(
        st.integers(1, 3) | st.integers(1, 2**40),  # the distance from the previous offset
        st.integers(0, 2**42),
        st.none() | st.binary(max_size=40),
        st.none() | st.binary(max_size=40) | st.just(b"long" * 1000),
        st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2),
    ),
    min_size=1,
    max_size=30,
)


def with_offsets(items: list[Row]) -> list[Row]:
    offsets = accumulate(item[0] for item in items)
    return [(offset, *item[1:]) for offset, item in zip(offsets, items, strict=True)]


def columns_of(items: list[Row]) -> Columns:
    return Columns(
        len(items),
        memoryview(array("q", [item[0] for item in items])),
        memoryview(array("q", [item[1] for item in items])),
        column_of([item[2] for item in items]),
        column_of([item[3] for item in items]),
        column_of([encode_headers(item[4]) if item[4] else b"" for item in items]),
        [BatchRows(0, TimestampType.CREATE_TIME, -1)],
        items[-1][0] + 1,
    )


def rows_of(columns: Columns) -> list[Any]:
    return [
        (columns.offsets[row], columns.timestamps[row], columns.key(row), columns.value(row), columns.headers(row))
        for row in range(columns.count)
    ]


def make_backup(path: Path, kind: SegmentFormat, items: list[Row]) -> BackupFolder:
    folder = BackupFolder(path)
    file = folder.create_segment_path("orders", 0, items[0][0], 1, kind)
    writer = open_writer(kind, file, "orders", 0)
    writer.write(columns_of(items))
    writer.close()
    end = items[-1][0] + 1
    partition = PartitionBackup(0, end, [folder.describe_segment(file, items[0][0], end, len(items))])
    topic = TopicBackup("id", 1, {"retention.ms": "-1"}, [partition], 5)
    run = Run(1, 2, len(items), file.stat().st_size)
    folder.publish(Manifest(FORMAT, VERSION, "b", "c", kind, Selection(), [run], {"orders": topic}))
    return folder


@pytest.mark.parametrize("kind", KINDS)
@given(items=rows, offset=st.integers(0, 2**41))
@settings(max_examples=15, deadline=None)
def test_records_are_read_as_they_were_written(kind: SegmentFormat, items: list[Row], offset: int) -> None:
    items = with_offsets(items)
    with TemporaryDirectory() as path:
        folder = make_backup(Path(path), kind, items)
        (segment,) = folder.read_manifest().segments
        found = [row for columns in read_records(folder.check_segment(segment)) for row in rows_of(columns)]
        assert [(*row[:4], [tuple(header) for header in row[4]]) for row in found] == items
        for bound in (offset, items[len(items) // 2][0]):
            assert count_below(folder.path / segment.file, bound) == sum(item[0] < bound for item in items)
        assert verify_backup(folder).problems == ()


@pytest.mark.parametrize("kind", KINDS)
@given(items=rows, data=st.data())
@settings(max_examples=25, deadline=None)
def test_a_changed_byte_of_any_file_is_found(kind: SegmentFormat, items: list[Row], data: st.DataObject) -> None:
    with TemporaryDirectory() as path:
        folder = make_backup(Path(path), kind, with_offsets(items))
        file = data.draw(st.sampled_from(sorted(each for each in Path(path).rglob("*") if each.is_file())))
        content = bytearray(file.read_bytes())
        if data.draw(st.booleans()):
            content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
        else:
            del content[data.draw(st.integers(0, len(content) - 1)) :]
        file.write_bytes(content)
        try:
            problems = verify_backup(folder).problems
        except BackupError as error:
            problems = (str(error),)
        assert len(problems) == 1
        assert str(file) in problems[0]


@given(items=rows, data=st.data())
@settings(max_examples=25, deadline=None)
def test_a_damaged_log_segment_is_an_error_or_other_records_and_nothing_else(
    items: list[Row], data: st.DataObject
) -> None:
    """The checksum of the manifest is checked first; without it, reading still ends in a BackupError."""
    with TemporaryDirectory() as path:
        folder = make_backup(Path(path), "log", with_offsets(items))
        (file,) = (folder.path / segment.file for segment in folder.read_manifest().segments)
        content = bytearray(file.read_bytes())
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
        file.write_bytes(content)
        with suppress(BackupError):
            for columns in read_records(file):
                rows_of(columns)


def test_a_manifest_of_another_version_is_an_error() -> None:
    data = encode_manifest(Manifest(FORMAT, 2, "b", None, "log", Selection()))
    with pytest.raises(BackupError, match="version 2: this version of Ottla reads 'ottla-backup' version 1"):
        decode_manifest(data, "manifest.json")


@pytest.mark.parametrize("file", ["../../etc/passwd", "/etc/passwd", "topics\\..\\x"])
def test_a_path_out_of_the_folder_is_an_error(tmp_path: Path, file: str) -> None:
    folder = make_backup(tmp_path, "log", [(0, 0, None, b"v", [])])
    manifest = folder.read_manifest()
    segments = manifest.topics["orders"].partitions[0].segments
    segments[0] = type(segments[0])(file, 0, 1, 1, 1, "")
    with pytest.raises(BackupError, match="leads out of the folder"):
        decode_manifest(encode_manifest(manifest), "manifest.json")
