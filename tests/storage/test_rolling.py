from __future__ import annotations

from pathlib import Path

from ottla.storage.log_config import LogConfig
from ottla.storage.segments.segment import Segment
from tests.storage.batches import NOW, append, batch, everything, open_log


def names(directory: Path, suffix: str = ".log") -> list[int]:
    return sorted(int(path.stem) for path in directory.glob(f"*{suffix}"))


def test_a_full_segment_is_rolled_to_one_named_for_its_first_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", LogConfig(segment_bytes=3 * len(batch(b"a"))))
    for _ in range(8):
        append(log, b"a")
    assert names(tmp_path / "t-0") == [0, 3, 6]
    assert len(everything(log)) == 8 * len(batch(b"a"))


def test_a_segment_that_spans_segment_ms_is_rolled(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", LogConfig(segment_ms=1000))
    for time in (0, 1000, 1001, 1500, 2001, 2002):
        append(log, b"a", timestamps=[NOW + time])
    assert names(tmp_path / "t-0") == [0, 2, 5]


def test_the_first_record_counts_for_segment_ms_after_a_restart_too(tmp_path: Path) -> None:
    config = LogConfig(segment_ms=1000)
    log = open_log(tmp_path / "t-0", config)
    append(log, b"a", timestamps=[NOW])
    log.close()
    log = open_log(tmp_path / "t-0", config, clean=True)
    append(log, b"b", timestamps=[NOW + 1001])
    assert names(tmp_path / "t-0") == [0, 1]


def test_records_without_a_timestamp_are_rolled_by_the_brokers_clock(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", LogConfig(segment_ms=1000))
    for now in (0, 1000, 1001):
        append(log, b"a", timestamps=[-1], now_ms=NOW + now)
    assert names(tmp_path / "t-0") == [0, 2]


def test_a_full_index_makes_the_segment_full(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", LogConfig(index_interval_bytes=1, segment_index_bytes=8 * 4))
    for time in range(12):
        append(log, b"a", timestamps=[NOW + time])
    assert len(names(tmp_path / "t-0")) > 1
    assert all(path.stat().st_size <= 32 for path in (tmp_path / "t-0").glob("*index"))


def test_a_segment_has_its_indexes_from_its_creation_on(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", LogConfig(segment_bytes=500))
    assert {path.name[20:] for path in (tmp_path / "t-0").glob("0000*")} == {".log", ".index", ".timeindex"}
    while len(names(tmp_path / "t-0")) == 1:
        append(log, b"a", timestamps=[NOW])
    active = f"{names(tmp_path / 't-0')[-1]:020d}"
    assert {path.name[20:] for path in (tmp_path / "t-0").glob(f"{active}*")} >= {".log", ".index", ".timeindex"}


def test_a_new_segment_does_not_use_old_index_files(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    left = Segment.create(tmp_path / "t-0", 7, 4096)
    left.file_path(".index").write_bytes(bytes(16))
    left.path.unlink()
    assert Segment.create(tmp_path / "t-0", 7, 4096).indexes.size_on_disk() == 0


def test_rolled_segments_have_both_indexes_on_disk(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", LogConfig(segment_bytes=500, index_interval_bytes=100))
    for time in range(30):
        append(log, b"a", timestamps=[NOW + time])
    sealed = names(tmp_path / "t-0")[:-1]
    for suffix in (".index", ".timeindex"):
        for base_offset in sealed:
            assert (tmp_path / "t-0" / f"{base_offset:020d}{suffix}").stat().st_size > 0
