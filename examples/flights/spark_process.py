"""Runs the job in a process of its own, and ends that process with all it has started, come what may.

On the way faults strike: a job that was killed is started again, and goes on by its checkpoint.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.progress import Progress, TaskID

from examples.flights.faults import Fault
from examples.flights.timing import Timing


class JobError(Exception):
    """The job did not end well."""


@dataclass
class Job:
    """The job through all of its lives."""

    command: Sequence[str]
    log: Path
    total: int
    """How many records the topic has."""
    progress: Progress
    faults: list[Fault] = field(default_factory=list)
    """What strikes, in this order."""
    timing: Timing = field(default_factory=lambda: Timing("preparing"))
    bars: dict[str, TaskID] = field(default_factory=dict)

    def run(self) -> None:
        """Run the job to its end, through all faults; JobError if it fails by itself."""
        names = {"topic": "flights → Spark → topic delays", "table": "flights → Spark → Delta table"}
        self.bars = {key: self.progress.add_task(name, total=None) for key, name in names.items()}
        self.log.write_bytes(b"")
        while not self.live():
            continue

    def live(self) -> bool:
        """One life; whether the job came to its end."""
        self.timing.enter("Spark's own start")
        with self.log.open("ab") as errors, running(self.command, errors) as process:
            assert process.stdout is not None
            for line in process.stdout:
                said = json.loads(line) if line.startswith(b"{") else {}
                if self.is_killed(self.show(said), process):
                    return False
            if process.wait():
                raise JobError(f"the Spark job failed: {reason(self.log)} (all of it: {self.log})")
        if self.faults:
            raise JobError(f"the job was over before {self.faults[0].name}")
        return True

    def show(self, said: dict[str, Any]) -> int:
        """Move the bars; how far the slower query is."""
        positions: dict[str, int] = said.get("positions", {})
        if "spark" in said:
            self.timing.enter("Spark's first batches")
        elif all(positions.values()) and positions:
            self.timing.enter("Spark at work")
        for key, position in positions.items():
            if position:
                self.progress.update(self.bars[key], completed=position, total=self.total)
        return min(positions.values(), default=0)

    def is_killed(self, position: int, process: subprocess.Popen[bytes]) -> bool:
        """Let the next fault strike if it is time; whether it was the job that died."""
        if not self.faults or position < self.faults[0].share * self.total:
            return False
        fault = self.faults.pop(0)
        if fault.strike is not None:
            self.tell(position, fault.strike())
            return False
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.tell(position, f"kill -9 {process.pid}, Spark; it starts again and goes on by its checkpoints")
        return True

    def tell(self, position: int, text: str) -> None:
        """A line above the bars."""
        self.progress.console.print(f"at {position:,} flights: {text}", highlight=False, soft_wrap=True)


@contextmanager
def running(command: Sequence[str], errors: object) -> Iterator[subprocess.Popen[bytes]]:
    """The process of `command`, leader of a group of its own: Python, its JVM and their children end together."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, start_new_session=True)  # type: ignore[call-overload]
    try:
        yield process
    finally:
        end_group(process)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Ask the whole group to end, then make it."""
    for way, patience in ((signal.SIGTERM, 3), (signal.SIGKILL, 10)):
        try:
            os.killpg(process.pid, way)
        except ProcessLookupError:
            break
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            continue
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def reason(log: Path) -> str:
    """The last line of the log that names an error, else the last of all."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if "Exception: " in line or "Error: " in line]
    return [*lines, *errors][-1] if lines else "it said nothing"
