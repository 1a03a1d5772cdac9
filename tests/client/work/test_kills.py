"""Workers that are killed again and again, and workers that are stopped by a signal."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.client.conftest import NewTopicName, eventually
from tests.client.work.running import WAYS, committed_offset, fill
from tests.client.work.victim import CONCURRENCY

pytestmark = pytest.mark.heavy

RECORDS_PER_KILL = 200
REPEATED_PER_KILL = 150
"""The limit of records that are processed again after one kill: those that were running, and those that were finished since
the last commit. One interval of 20 ms is about 60 records; on a busy machine a commit may be late."""


@contextmanager
def victim(servers: str, topic: str, path: Path, way: str, kind: str = "consumer") -> Iterator[subprocess.Popen[str]]:
    """A worker in a process, killed at the end of the block."""
    command = [sys.executable, "-m", "tests.client.work.victim", servers, topic, str(path), way, kind]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as worker:
        try:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "started\n"
            yield worker
        finally:
            worker.kill()


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.parametrize("way", [*WAYS, "processes"])
@pytest.mark.parametrize("kills", [10, pytest.param(200, marks=pytest.mark.long)])
def test_kills_lose_no_record_and_repeat_few(
    servers: str, new_topic: NewTopicName, tmp_path: Path, way: str, kills: int
) -> None:
    topic, path = new_topic(2), tmp_path / "seen"
    values = [str(number) for number in range(kills * RECORDS_PER_KILL)]
    fill(servers, topic, values, key=lambda value: str(int(value) % 50).encode())
    for _ in range(kills):
        before = len(lines_of(path))
        with victim(servers, topic, path, way):
            wanted = before + random.randrange(20, RECORDS_PER_KILL)
            eventually(lambda wanted=wanted: len(lines_of(path)) >= wanted)  # type: ignore[misc]
    with victim(servers, topic, path, way):
        eventually(lambda: set(lines_of(path)) == set(values), timeout=300)
        eventually(lambda: sum(committed_offset(servers, topic, topic, each) for each in (0, 1)) == len(values))
    seen = Counter(lines_of(path))
    repeated = sum(seen.values()) - len(values)
    print(f"{kills} kills, {len(values)} records, {repeated} repeated")
    assert repeated <= kills * (REPEATED_PER_KILL + CONCURRENCY)


@pytest.mark.parametrize(
    ("way", "number"), [("threads", signal.SIGTERM), ("asyncio", signal.SIGINT), ("processes", signal.SIGTERM)]
)
def test_a_signal_ends_a_worker_and_nothing_is_repeated(
    servers: str, topic: str, tmp_path: Path, way: str, number: signal.Signals
) -> None:
    path = tmp_path / "seen"
    values = [str(number) for number in range(600)]
    fill(servers, topic, values)
    with victim(servers, topic, path, way) as worker:
        eventually(lambda: len(lines_of(path)) > 100)
        worker.send_signal(number)
        assert worker.stdout is not None
        assert worker.stdout.read() == "ended well\n"
        assert worker.wait() == 0
    with victim(servers, topic, path, way):
        eventually(lambda: len(lines_of(path)) >= 600)
        eventually(lambda: committed_offset(servers, topic, topic) == 600)
    assert sorted(lines_of(path)) == sorted(values)
