"""How soon a broker is ready, how much memory it takes, and how much more after a gigabyte went through it."""

from __future__ import annotations

import statistics
import time
from tempfile import TemporaryDirectory

from rich.table import Table

from benchmarks.brokers import Running, ottla_broker, started
from benchmarks.confluent import consume, fill, new_topic
from benchmarks.race import resident_bytes, show

STARTS = 10
SIZE, RECORDS = 1024, 1_000_000
READY_SECONDS, IDLE_MB, GROWTH_MB = 0.3, 60, 50
"""What is promised."""


def start_seconds() -> float:
    """From the shell's point of view: until the line that says where it listens."""
    with TemporaryDirectory(prefix="ottla-bench-") as folder:
        clock = time.perf_counter()
        with started(folder) as (_, line):
            span = time.perf_counter() - clock
            assert line, "ottla broker said nothing"
    return span


def megabytes(server: Running) -> float:
    """What the broker's process holds now."""
    return resident_bytes(server.process) / 1e6


def main() -> None:
    spans = [start_seconds() for _ in range(STARTS)]
    with ottla_broker() as server:
        idle = megabytes(server)
        topic = new_topic(server)
        fill(server, topic, SIZE, RECORDS)
        produced = megabytes(server)
        consume(server, topic, RECORDS)
        consumed = megabytes(server)
    shown = Table(title="ottla broker", title_justify="left")
    for heading in ("", "measured", "promised"):
        shown.add_column(heading)
    shown.add_row("from the shell to ready", f"{statistics.median(spans):.3f} s", f"{READY_SECONDS} s")
    shown.add_row("the slowest of ten starts", f"{max(spans):.3f} s", "")
    shown.add_row("memory, idle", f"{idle:.0f} MB", f"{IDLE_MB} MB")
    shown.add_row("more after 1 GB in", f"{produced - idle:.0f} MB", f"{GROWTH_MB} MB")
    shown.add_row("more after 1 GB in and out", f"{consumed - idle:.0f} MB", f"{GROWTH_MB} MB")
    show(shown)


if __name__ == "__main__":
    main()
