"""Runs the job in a process of its own, and ends that process with all it has started, come what may."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.progress import Progress


class JobError(Exception):
    """The job did not end well."""


def run_job(servers: str, folder: Path, log: Path, total: int, progress: Progress) -> None:
    """Run the job to its end and show how many of `total` records it has read; JobError if it fails."""
    task = progress.add_task("Spark starts", total=None)
    command = [sys.executable, "-m", "examples.flights.job", servers, str(folder / "checkpoint")]
    with log.open("wb") as errors, running(command, errors) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said = json.loads(line) if line.startswith(b"{") else {}
            if "spark" in said:
                progress.update(task, description=f"flights → Spark {said['spark']} → delays")
            elif "rows" in said:
                progress.update(task, completed=min(said["rows"], total), total=total if said["rows"] else None)
        status = process.wait()
    if status:
        raise JobError(f"the Spark job failed: {reason(log)} (all of it: {log})")


@contextmanager
def running(command: list[str], errors: object) -> Iterator[subprocess.Popen[bytes]]:
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
