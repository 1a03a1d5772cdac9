"""Kafka's own reader of log files reads our compacted segments."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from interop.kafka_tools import dump
from ottla.records.compression import Codec
from ottla.storage.log_config import LogConfig
from tests.storage.batches import NOW, open_log
from tests.storage.compacting import compact, put, roll


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_dump_log_segments_reads_a_compacted_log_and_its_indexes(tmp_path: Path, codec: Codec) -> None:
    config = LogConfig(cleanup_policy=("compact",), segment_bytes=20_000, index_interval_bytes=100)
    log = open_log(tmp_path / "t-0", config)
    for number in range(600):
        value = None if number % 50 == 7 else b"x" * 40
        put(log, (b"a%d" % (number % 90), value), (b"b", b"%d" % number), timestamp=NOW + number, codec=codec)
    roll(log)
    compact(log)
    offsets: list[int] = []
    marks = 0
    for segment in sorted(log.directory.glob("*.log")):
        text = dump(segment, "--deep-iteration")
        assert "isvalid: false" not in text
        marks += len(re.findall(r"deleteHorizonMs: OptionalLong\[\d+\]", text))
        offsets += map(int, re.findall(r"^\| offset: (\d+) ", text, re.MULTILINE))
        for index in (segment.with_suffix(".index"), segment.with_suffix(".timeindex")):
            if index.exists() and index.stat().st_size:
                output = dump(index)
                assert not re.search("Mismatch|not found|out of order", output), output
    assert offsets == [*range(1020, 1200, 2), 1199]
    assert marks
