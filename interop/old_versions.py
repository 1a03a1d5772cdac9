"""Nodes that run the code of an earlier commit or of this one, as processes over the same data directories."""

from __future__ import annotations

import functools
import io
import os
import signal
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import IO

from rivals.apache_kafka import ROOT
from tests.patience import eventually

PRESENT = ROOT / "src"
READY_SECONDS = 120.0
"""Old code runs without its compiled modules."""
STOP_SECONDS = 60.0


@functools.cache
def find_source(commit: str, place: Path) -> Path | None:
    """Return the `src` of a commit, unpacked below `place`; None in a clone without this part of the history."""
    done = subprocess.run(
        ["git", "archive", commit, "src"], cwd=ROOT, capture_output=True, timeout=READY_SECONDS, check=False
    )
    if done.returncode:
        return None
    target = place / commit[:8]
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(target, filter="data")
    return target / "src"


def run_command(source: Path, *words: str) -> str:
    """Run `ottla …` of a version, and return its output."""
    command = [sys.executable, "-m", "ottla.cli.main", *words]
    done = subprocess.run(
        command, env=environment(source), capture_output=True, text=True, timeout=READY_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def environment(source: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}


class VersionedNode:
    """A node with a settings file. Each start may use another version."""

    def __init__(self, settings: Path) -> None:
        self._settings = settings
        self._log = settings.with_suffix(".log")
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] | None = None

    def start(self, source: Path) -> None:
        """Start the node with this code, and wait until it is ready."""
        self._output = self._log.open("wb")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ottla.cli.main", "broker", "--config", str(self._settings)],
            env=environment(source),
            stdout=self._output,
            stderr=subprocess.STDOUT,
        )

    def wait_until_ready(self) -> None:
        """Wait until the node has printed `ready`; a node that ends first fails with its log."""
        process = self._process
        assert process is not None
        eventually(lambda: process.poll() is not None or b"\nready " in b"\n" + self._log.read_bytes(), READY_SECONDS)
        assert process.poll() is None, self._log.read_text()[-2000:]

    def stop(self) -> None:
        """Stop the node with SIGTERM; it must end cleanly."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            status = process.wait(STOP_SECONDS)
        finally:
            process.kill()
            if self._output is not None:
                self._output.close()
        assert status == 0, self._log.read_text()[-2000:]
