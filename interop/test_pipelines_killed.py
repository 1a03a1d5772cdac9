"""Pipelines that are killed lose and repeat no record."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from interop.test_spark_cluster import committed
from ottla import Broker, Producer
from tests.patience import eventually

pytestmark = pytest.mark.usefixtures("quick_drivers")
BATCH = 100
LONG = 240.0
"""Seconds. Each run starts its own Spark on a machine that may be busy."""


class Command:
    """`ottla pipeline run` in a separate process."""

    def __init__(self, folder: Path, *more: str) -> None:
        self.said = folder / f"said-{len(list(folder.glob('said-*')))}"
        arguments = ("pipeline", "run", "p.yaml", "--master", "local[2]", *more)
        with self.said.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "ottla.cli.main", *arguments],
                cwd=folder,
                stdout=output,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def events(self, name: str) -> list[dict[str, object]]:
        found = [json.loads(line) for line in self.said.read_text("utf-8").splitlines() if line.endswith("}")]
        return [one for one in found if one["event"] == name]

    def kill(self) -> None:
        """Kill the manager, its Java process and all their workers at once."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(60)


@pytest.mark.behaviour("D3")
@pytest.mark.parametrize("kills", [(2,), pytest.param((1, 3, 1, 2), marks=pytest.mark.long)])
def test_a_repeatedly_killed_pipeline_loses_and_repeats_no_record(kills: tuple[int, ...], tmp_path: Path) -> None:
    """`kills` has the number of batches after which each run is killed."""
    with Broker() as broker:
        sent = 0
        source: dict[str, Any] = {"type": "topic", "topic": "in", "valueFormat": "json", "valueSchema": "n bigint"}
        source |= {"maxOffsetsPerTrigger": BATCH}
        insert = {"type": "InsertField", "static.field": "shop", "static.value": "seoul"}
        pipeline = {"source": source, "transforms": [insert], "sink": {"type": "topic", "topic": "out"}}
        settings = {"bootstrap.servers": broker.bootstrap_servers}
        file = {"settings": settings, "pipelines": {"copy": {**pipeline, "trigger": "1 millisecond"}}}
        (tmp_path / "p.yaml").write_text(json.dumps(file), encoding="utf-8")
        for batches in kills:
            # On a busy machine a kill may arrive after all records were read; the next run has to have records to read.
            sent = send(broker, sent, batches * BATCH)
            command = Command(tmp_path)
            try:
                eventually(lambda: len(command.events("progress")) >= batches or ended(command), LONG)  # noqa: B023
                assert not ended(command), command.said.read_text("utf-8")
            finally:
                command.kill()
        sent = send(broker, sent, 2 * BATCH)
        last = Command(tmp_path)
        try:
            eventually(lambda: has_caught_up(last) or ended(last), LONG)
            last.process.send_signal(signal.SIGINT)  # as Ctrl-C does
            eventually(lambda: ended(last), LONG)
        finally:
            last.kill()
        assert last.process.returncode == 0, last.said.read_text("utf-8")
        assert last.events("stopped")
        found = Counter(json.loads(value)["n"] for value in committed(broker.bootstrap_servers, "out").elements())
    missing = [number for number in range(sent) if number not in found]
    assert (missing, [number for number, times in found.items() if times > 1]) == ([], [])
    first = last.events("progress")[0]["batch"]
    assert isinstance(first, int)
    assert first >= max(kills)  # it continued at its position


def send(broker: Broker, sent: int, count: int) -> int:
    """Send `count` more records, and return the new total."""
    with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for number in range(sent, sent + count):
            producer.send("in", f'{{"n": {number}}}'.encode())
    return sent + count


def ended(command: Command) -> bool:
    return command.process.poll() is not None


def has_caught_up(command: Command) -> bool:
    """True if no records are left to read."""
    return any(one.get("lag") == 0 for one in command.events("progress"))
