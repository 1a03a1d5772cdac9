"""A process that is killed while it appends."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.records.batch import iter_headers, verify
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.log import Log
from tests.storage.appender import CONFIG, FLIGHTS, value_of
from tests.storage.batches import NOW, everything

ROUNDS = 8


def append_and_be_killed(directory: Path, acknowledgements: int) -> int:
    """Run the appender until it acknowledged that many batches, kill it, and return the last offset acknowledged."""
    command = [sys.executable, "-m", "tests.storage.appender", str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(acknowledgements):
            acknowledged = int(process.stdout.readline())
        process.kill()
        # A complete line that it printed before it died counts too.
        for line in process.stdout:
            if line.endswith("\n"):
                acknowledged = int(line)
    return acknowledged


def check(log: Log, acknowledged: int) -> None:
    """Every record that was acknowledged is there once, in order, with the value it was given."""
    assert log.end_offset > acknowledged
    data = everything(log)
    expected = 0
    for position, header in iter_headers(data):
        verify(data, position, header)
        assert header.base_offset == expected
        assert value_of(header.base_offset) in data[position : position + header.size_bytes]
        expected = header.next_offset
    assert expected == log.end_offset


@pytest.mark.parametrize("flushing", ["", "flush"])
def test_every_acknowledged_batch_survives_kill_9(tmp_path: Path, flushing: str) -> None:
    chance = random.Random(4)
    (tmp_path / "flush").write_text(flushing)
    for _ in range(ROUNDS // 2):
        acknowledged = append_and_be_killed(tmp_path / "data", chance.randrange(1, 400))
        directory = DataDirectory.open(tmp_path / "data", node_id=1)
        assert not directory.was_clean_shutdown
        check(directory.open_log(FLIGHTS, CONFIG, now_ms=NOW), acknowledged)
        directory.close(clean=False)
