"""Runs the pipelines in a process of their own, and ends that process with all it has started, come what may.

On the way faults strike: what was killed is started again, and goes on by its checkpoints.
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
    """The pipelines did not end well."""


@dataclass
class Job:
    """The process of the pipelines, through all of its lives."""

    command: Sequence[str]
    log: Path
    total: int
    """How many records the topic has."""
    progress: Progress
    faults: list[Fault] = field(default_factory=list)
    """What strikes, in this order."""
    timing: Timing = field(default_factory=lambda: Timing("preparing"))
    bars: dict[str, TaskID] = field(default_factory=dict)
    positions: dict[str, int] = field(default_factory=dict)
    """How many records each pipeline has read, in all of its lives."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """What the file asks for."""

    def run(self) -> None:
        """Run them to their end, through all faults; JobError if they fail by themselves."""
        names = {"delays": "flights → Spark → topic delays", "flights": "flights → Spark → Delta table"}
        self.positions = dict.fromkeys(names, 0)
        self.bars = {key: self.progress.add_task(name, total=None) for key, name in names.items()}
        self.log.write_bytes(b"")
        while not self.live():
            continue

    def live(self) -> bool:
        """One life; whether they came to their end."""
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
        """Move the bars; how far the slower pipeline is."""
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
        """Let the next fault strike if it is time; whether it was Spark that died."""
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
def running(
    command: Sequence[str], errors: IO[bytes], environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """The process of `command`, leader of a group of its own: Python, its JVM and their children end together."""
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


def last_line(log: Path) -> str:
    """What was said last."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"
