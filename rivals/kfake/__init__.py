"""Franz-go's kfake, compiled from the Go module proxy's sources: one node, on disk without waiting for it, as Kafka.

The program stays in `.cache/kfake`; `fetch` compiles it where it is not there, which takes a minute.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from rivals.apache_kafka import ROOT, STOP_SECONDS, run
from rivals.one_at_a_time import one_at_a_time

SOURCE = Path(__file__).parent
PROGRAM = ROOT / ".cache" / "kfake" / "kfake"


class Kfake(NamedTuple):
    """A running kfake."""

    bootstrap_servers: str
    process: int


def fetched() -> bool:
    """Return True if the program is compiled, and not older than its source."""
    sources = (SOURCE / "main.go", SOURCE / "go.mod")
    return PROGRAM.exists() and PROGRAM.stat().st_mtime >= max(each.stat().st_mtime for each in sources)


def can_be_had() -> bool:
    """Return True if the program or a Go compiler is installed."""
    return fetched() or shutil.which("go") is not None


def fetch() -> None:
    """Compile the program unless that was done before."""
    with one_at_a_time(PROGRAM):
        if not fetched():
            bring()


def bring() -> None:
    if shutil.which("go") is None:
        raise RuntimeError("there is no Go here, which kfake is compiled by: install Go 1.26 or newer")
    # Under another name first, so that an interrupted build is not taken for a finished one.
    part = PROGRAM.with_suffix(".part")
    run(["go", "build", "-C", str(SOURCE), "-buildvcs=false", "-o", str(part), "."])
    os.utime(part)
    part.rename(PROGRAM)


def command(directory: Path, port: int = 0) -> list[str]:
    """Return the command that starts it on a directory. It prints its address when it is ready."""
    return [str(PROGRAM), str(directory), str(port)]


@contextmanager
def kfake() -> Iterator[Kfake]:
    """Start a node with an empty directory, and stop it at the end."""
    with (
        TemporaryDirectory(prefix="kfake-") as folder,
        subprocess.Popen(command(Path(folder)), stdout=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            if not address:
                raise RuntimeError(f"kfake ended with {process.wait(STOP_SECONDS)}")
            yield Kfake(address, process.pid)
        finally:
            process.terminate()
