"""Run the pipelines, kill their processes, and compare the table with the database at the end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from deltalake import DeltaTable

from examples.changes.shop import Rows, Shop

FILE = Path(__file__).with_name("changes.yaml")
PATIENCE = 240.0


class Pipelines:
    """`ottla pipeline run changes.yaml` in a folder, started as often as necessary."""

    def __init__(self, folder: Path, servers: str, database: str) -> None:
        self.folder = folder
        self.environment = {**os.environ, "SERVERS": servers, "DATABASE": database}
        self.process: subprocess.Popen[bytes] | None = None
        self.lives = 0
        (folder / FILE.name).write_text(FILE.read_text("utf-8"), "utf-8")

    def start(self) -> None:
        self.lives += 1
        command = [sys.executable, "-m", "ottla.cli.main", "pipeline", "run", FILE.name, "--master", "local[2]"]
        with self.said.open("wb") as out, (self.folder / "errors").open("ab") as errors:
            self.process = subprocess.Popen(
                command, cwd=self.folder, env=self.environment, stdout=out, stderr=errors, start_new_session=True
            )

    @property
    def said(self) -> Path:
        return self.folder / f"said-{self.lives}"

    def events(self) -> list[Any]:
        return [json.loads(line) for line in self.said.read_text("utf-8").splitlines() if line.endswith("}")]

    def batches(self, name: str) -> int:
        """Return the number of batches that a pipeline has written since its last start."""
        return sum((one["pipeline"], one["event"]) == (name, "progress") for one in self.events())

    def kill(self) -> None:
        """Kill the manager, Spark's Java process and all workers at once."""
        assert self.process is not None
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def kill_java(self) -> None:
        """Kill Spark's driver alone. The manager detects it and exits."""
        assert self.process is not None
        for child in psutil.Process(self.process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # a worker may end meanwhile
                if child.name() == "java":
                    child.kill()
        self.process.wait()

    def kill_workers(self) -> None:
        """Kill Spark's Python processes. Spark starts them again."""
        assert self.process is not None
        for child in psutil.Process(self.process.pid).children(recursive=True):
            with suppress(psutil.Error):
                if "java" not in child.name():
                    child.kill()

    def stop(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(PATIENCE)


def wait_for(condition: Callable[[], bool], pipelines: Pipelines, what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        ended = pipelines.process is not None and pipelines.process.poll() is not None
        if ended or time.monotonic() > deadline:
            raise AssertionError(f"{what} did not happen:\n{pipelines.said.read_text('utf-8')[-3000:]}")
        time.sleep(0.1)


def in_table(folder: Path) -> Rows:
    """Return the rows of the Delta table."""
    try:
        table = DeltaTable(str(folder / "lake" / "orders")).to_pyarrow_table()
    except Exception:  # the table does not exist yet
        return []
    return sorted(zip(*(table.column(name).to_pylist() for name in ("id", "item", "amount")), strict=True))


def differences(shop: Shop, folder: Path) -> tuple[int, int]:
    """Return the number of missing or different rows, and of surplus rows."""
    wanted, found = shop.rows(), in_table(folder)
    return len(set(wanted) - set(found)), len(found) - len(set(found) & set(wanted))
