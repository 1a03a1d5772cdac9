"""Run the pipelines in a separate process, and end that process with all its children in every case.

Faults happen during the run. A killed process is started again and continues from its checkpoints.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from rich.progress import Progress, TaskID

from examples.flights.faults import Fault
from examples.flights.timing import Timing


class JobError(Exception):
    """The pipelines failed."""


@dataclass
class Job:
    """The process of the pipelines, including its restarts."""

    command: Sequence[str]
    log: Path
    total: int
    """The number of records in the topic."""
    progress: Progress
    faults: list[Fault] = field(default_factory=list)
    """The faults in their order."""
    timing: Timing = field(default_factory=lambda: Timing("preparing"))
    bars: dict[str, TaskID] = field(default_factory=dict)
    positions: dict[str, int] = field(default_factory=dict)
    """The number of records that each pipeline has read, over all restarts."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The variables that the file refers to."""

    def run(self) -> None:
        """Run the pipelines to their end, through all faults. Raises JobError if they fail by themselves."""
        names = {"delays": "flights → Spark → topic delays", "flights": "flights → Spark → Delta table"}
        self.positions = dict.fromkeys(names, 0)
        self.bars = {key: self.progress.add_task(name, total=None) for key, name in names.items()}
        self.log.write_bytes(b"")
        while not self.live():
            continue

    def live(self) -> bool:
        """Run the process once. Returns True if the pipelines reached their end."""
        self.timing.enter("Spark's own start")
        with self.log.open("ab") as errors, running(self.command, errors, self.environment) as process:
            assert process.stdout is not None
            reasons: list[str] = []
            for line in process.stdout:
                event = json.loads(line) if line.startswith(b"{") else {}
                reasons += [str(event["reason"])] if "reason" in event else []
                if self.is_killed(self.show(event), process):
                    return False
            if process.wait():
                raise JobError(f"the pipelines failed: {[last_line(self.log), *reasons][-1]} (all of it: {self.log})")
        if self.faults:
            raise JobError(f"the pipelines were over before {self.faults[0].name}")
        return True

    def show(self, event: dict[str, Any]) -> int:
        """Update the bars, and return the position of the slower pipeline."""
        if event.get("event") == "starting":
            self.timing.enter("Spark's first batches")
        elif event.get("event") == "progress":
            name, position = event["pipeline"], event["position"] or 0
            self.positions[name] = max(position, self.positions[name])
            self.progress.update(self.bars[name], completed=self.positions[name], total=self.total)
            if all(self.positions.values()):
                self.timing.enter("Spark at work")
        return min(self.positions.values())

    def is_killed(self, position: int, process: subprocess.Popen[bytes]) -> bool:
        """Cause the next fault if it is due, and return True if it killed Spark."""
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
        """Print a line above the bars."""
        self.progress.console.print(f"at {position:,} flights: {text}", highlight=False, soft_wrap=True)


@contextmanager
def running(
    command: Sequence[str], errors: IO[bytes], environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Run `command` as the leader of its own process group, so that Python, its JVM and their children end together."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=errors,
        start_new_session=True,
        env={**os.environ, **environment},
    )
    try:
        yield process
    finally:
        end_group(process)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Send SIGTERM to the whole group, and SIGKILL after a timeout."""
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


def last_line(log: Path) -> str:
    """Return the last line of the log."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"
