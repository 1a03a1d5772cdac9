"""A segment that has gone from between others: a start tells its offsets once, and of a topic that was compacted it tells none."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.broker.embedded import Broker
from tests.broker.wire import Wire
from tests.patience import eventually

LARGE = b"x" * 600_000


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if "are in no segment" in each.getMessage()]


def test_a_start_tells_once_which_offsets_are_in_no_segment(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Broker(tmp_path, log_segment_bytes=1_048_576) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        wire.create("u")
        for topic in ("u", "t"):
            for _ in range(4):
                assert wire.produce(topic, LARGE).error_code == 0
    for topic in ("t", "u"):
        _, second, *_ = sorted((tmp_path / f"{topic}-0").glob("*.log"))
        second.unlink()
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n1\nu 0 4\n")
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        eventually(lambda: bool(told(caplog)))
        assert wire.produce("t", b"b").base_offset == 4
    (line,) = told(caplog)
    assert str(tmp_path / "t-0") in line
    assert "offsets 1 to 1 are in no segment" in line
