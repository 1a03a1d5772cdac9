"""Measure the round trip of one record, from producer to consumer, while the broker is idle and while it compacts a
log.

`python -m benchmarks.beside_compaction`; LOG_MB=500 by default. Both runs use the same broker and directory.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from ottla.records.builder import BatchBuilder
from tests.broker.wire import Wire, batch, produce

LOG_MB = int(os.environ.get("LOG_MB", "500"))
KEYS = 100_000
VALUE_BYTES = 200
BATCH_BYTES = 65_536
QUIET_SECONDS = 5.0
PATIENCE = 600.0
SEGMENT_BYTES = 50_000_000


@contextmanager
def broker(directory: Path, *, cleaner: bool) -> Iterator[Wire]:
    """Start a broker on `directory`, and connect to it."""
    settings = [f"log.cleaner.enable={str(cleaner).lower()}", "log.cleaner.backoff.ms=500"]
    command = [
        sys.executable,
        "-m",
        "ottla.cli.main",
        "broker",
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        str(directory),
    ]
    for setting in settings:
        command += ["--set", setting]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            with Wire(process.stdout.readline().split()[-1]) as wire:
                yield wire
        finally:
            process.terminate()


def fill(wire: Wire) -> None:
    """Write consecutive updates of `KEYS` keys."""
    number = written = 0
    while written < LOG_MB * 1_000_000:
        builder = BatchBuilder(max_bytes=BATCH_BYTES)
        while builder.append(1000, b"key-%012d" % (number % KEYS), os.urandom(VALUE_BYTES // 2) * 2):
            number += 1
        written += builder.size_bytes
        assert not wire.ask(produce("table", builder.build()), 11).responses[0].partition_responses[0].error_code


def round_trips(wire: Wire, busy: Callable[[], bool]) -> tuple[list[float], list[float]]:
    """Return the milliseconds of each produce and of each fetch of one record while `busy`."""
    data = batch([b"x" * 100])
    produced, fetched = [], []
    while busy():
        began = time.perf_counter()
        offset = wire.ask(produce("beside", data), 11).responses[0].partition_responses[0].base_offset
        half = time.perf_counter()
        assert wire.fetch("beside", offset).records
        produced.append((half - began) * 1000)
        fetched.append((time.perf_counter() - half) * 1000)
        time.sleep(0.001)
    return produced, fetched


def show(name: str, figures: tuple[list[float], list[float]]) -> None:
    for what, found in zip(("produce", "fetch"), figures, strict=True):
        ordered = sorted(found)
        shares = [ordered[min(int(len(ordered) * share), len(ordered) - 1)] for share in (0.5, 0.99, 0.999, 1)]
        print(f"{name:12} {what:8} {len(ordered):7} " + " ".join(f"{share:8.2f}" for share in shares), flush=True)


def main() -> None:
    """Run and print both measurements."""
    with TemporaryDirectory(prefix="beside-") as text:
        folder = Path(text)
        with broker(folder, cleaner=False) as wire:
            wire.create("beside")
            wire.create("table", cleanup_policy="compact", segment_bytes=SEGMENT_BYTES)
            fill(wire)
            print("                          count      p50      p99    p99.9      max  ms")
            end = time.monotonic() + QUIET_SECONDS
            show("quiet", round_trips(wire, lambda: time.monotonic() < end))
        before = sum(path.stat().st_size for path in folder.glob("table-0/*.log"))
        began, done = time.monotonic(), folder / "cleaner-offset-checkpoint"
        with broker(folder, cleaner=True) as wire:
            limit = began + PATIENCE
            show("compacting", round_trips(wire, lambda: not done.exists() and time.monotonic() < limit))
            after = sum(path.stat().st_size for path in folder.glob("table-0/*.log"))
        print(f"{before / 1e6:.0f} MB became {after / 1e6:.0f} MB in {time.monotonic() - began:.1f} s, start included")


if __name__ == "__main__":
    main()
