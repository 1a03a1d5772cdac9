"""A segment missing between others: a start logs its offsets once, and none of a compacted topic."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, cast

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.broker.event_loop.disk import Disk
from ottla.broker.replica_manager.offset_gap_check import OffsetGapCheck
from ottla.broker.replica_manager.partition import Partition
from ottla.model import TopicPartition
from ottla.storage.directory.data_directories import DataDirectories, open_directories
from tests.broker.wire import Wire
from tests.patience import eventually

LARGE = b"x" * 600_000


def list_messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if "are in no segment" in each.getMessage()]


def test_a_start_logs_once_the_offsets_that_no_segment_has(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Broker(tmp_path, log_segment_bytes=1_048_576) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        wire.create("u")
        for topic in ("u", "t"):
            for _ in range(4):
                assert wire.produce(topic, LARGE).error_code == 0
    for topic in ("t", "u"):
        _, second, *_ = sorted((tmp_path / f"{topic}-0").glob("*.log"))
        second.unlink()
        (second.parent / "segment-succession").unlink()  # as of a broker that notes nothing
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n1\nu 0 4\n")
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        eventually(lambda: bool(list_messages(caplog)))
        assert wire.produce("t", b"b").base_offset == 4
    (line,) = list_messages(caplog)
    assert str(tmp_path / "t-0") in line
    assert "offsets 1 to 1 are in no segment" in line


class Inline:
    """A disk that executes its tasks at once."""

    def submit(self, work: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
        work()
        done(None)


def test_the_search_for_gaps_does_not_choose_directories(tmp_path: Path) -> None:
    twice, nowhere = TopicPartition("twice", 0), TopicPartition("nowhere", 0)
    paths = [str(tmp_path / disk) for disk in ("a", "b")]
    open_directories(paths, node_id=1).close()
    for path in paths:
        Path(path, "twice-0").mkdir()
    directories = open_directories(paths, node_id=1)
    assert isinstance(directories, DataDirectories)
    first, second = directories.online()
    directories.assigned = lambda partition: second.directory_id
    try:
        OffsetGapCheck(directories, cast(Disk, Inline())).start(cast(list[Partition], [Named(twice), Named(nowhere)]))
        assert first.folder(twice).is_dir()
        directories.assigned = lambda partition: first.directory_id
        assert directories.place(twice) is first
        assert directories.place(nowhere) is first
    finally:
        directories.close()


class Named(NamedTuple):
    topic_partition: TopicPartition
