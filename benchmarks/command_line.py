"""Measure commands in the shell: `ottla topics list` and `kcat -L` from start to exit, and the printing of records."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from benchmarks.brokers import Running, ottla_broker
from benchmarks.confluent import fill, new_topic
from benchmarks.race import Contender, race

OTTLA = str(Path(sys.executable).with_name("ottla"))
RUNS = 11
SIZE, RECORDS = 1024, 500_000
AIM_SECONDS = 0.25


def printed(command: Sequence[str], count: int = 1) -> int:
    """Run a command to its end with its output discarded, and return `count`."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return count


def seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def main() -> None:
    kcat = shutil.which("kcat")
    with ottla_broker() as server:
        topic = new_topic(server)
        fill(server, topic, SIZE, RECORDS)
        lists = {"ottla topics list": [OTTLA, "topics", "list", "--bootstrap-server", server.bootstrap]}
        if kcat is not None:
            lists["kcat -L"] = [kcat, "-L", "-b", server.bootstrap]
        spans: dict[str, list[float]] = {name: [] for name in lists}
        for _ in range(RUNS):
            for name, command in lists.items():
                spans[name].append(seconds(partial(printed, command)))
        for name, found in spans.items():
            print(f"{name}: {statistics.median(found):.3f} s (aim of ours: ≤ {AIM_SECONDS})", flush=True)
        race(f"{RECORDS} records of {SIZE} bytes printed", list(printers(server, topic, kcat)), rounds=3)


def printers(server: Running, topic: str, kcat: str | None) -> list[Contender]:
    """Return the contenders that print the topic. Ratios are relative to the last one."""
    at = ["--bootstrap-server", server.bootstrap, "--from-beginning", "--exit"]
    commands = {
        "ottla records consume": [OTTLA, "records", "consume", topic, *at],
        "ottla records consume --keys": [OTTLA, "records", "consume", topic, "--keys", *at],
        "ottla records consume --json": [OTTLA, "records", "consume", topic, "--json", *at],
    }
    if kcat is not None:
        commands["kcat -C"] = [kcat, "-C", "-e", "-q", "-b", server.bootstrap, "-t", topic, "-o", "beginning"]
    return [Contender(name, partial(printed, command, RECORDS), server.process) for name, command in commands.items()]


if __name__ == "__main__":
    main()
