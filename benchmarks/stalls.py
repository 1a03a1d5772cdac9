"""Measure the longest block of a broker's event loop under load: the worst latency of consecutive small requests.

The loads are: none, a compaction, a replica that moves between two directories, and a replica that another broker
fetches, measured at both. `python -m benchmarks.stalls`; LOG_MB=500 by default. No request may wait half a second.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.beside_compaction import SEGMENT_BYTES, fill
from ottla import Admin, Cluster, NewTopic, TopicPartition
from ottla.client.admin import TopicPartitionReplica
from ottla.model import PartitionInfo
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from tests.broker.wire import Wire

PAUSE_SECONDS = 0.001
LOOK_SECONDS = 0.1
QUIET_SECONDS = 5.0
PATIENCE = 240.0
PLACE = TopicPartition("table", 0)


class Probe:
    """Sends ApiVersions requests to a broker continuously, in a thread."""

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.spans: list[float] = []
        self._address = address
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Probe:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        ordered = sorted(self.spans)
        shares = (ordered[min(int(len(ordered) * share), len(ordered) - 1)] for share in (0.99, 0.999, 1))
        figures = (statistics.median(ordered), *shares)
        print(f"{self.name:34} {len(ordered):7} " + " ".join(f"{each:8.2f}" for each in figures), flush=True)

    def _run(self) -> None:
        with Wire(self._address) as wire:
            while not self._over.wait(PAUSE_SECONDS):
                began = time.perf_counter()
                wire.ask(ApiVersionsRequest("probe", "0"), 4)
                self.spans.append((time.perf_counter() - began) * 1000)


def until(condition: Callable[[], object]) -> None:
    limit = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < limit
        time.sleep(LOOK_SECONDS)


@contextmanager
def broker(directories: str, **settings: str) -> Iterator[str]:
    """Start a broker in a process of its own, and yield its address."""
    command = [sys.executable, "-m", "ottla.cli.main", "broker", "--listen", "127.0.0.1:0", "--data-dir", directories]
    for name, value in settings.items():
        command += ["--set", f"{name.replace('_', '.')}={value}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()


def measure_one_broker(folder: Path) -> None:
    """Measure a broker with two directories."""
    disks = [folder / "a", folder / "b"]
    where = ",".join(map(str, disks))
    with broker(where, log_cleaner_enable="false") as address, Wire(address) as wire:
        wire.create("table", cleanup_policy="compact", segment_bytes=SEGMENT_BYTES)
        fill(wire)
        with Probe("nothing else", address):
            time.sleep(QUIET_SECONDS)
        copy = TopicPartitionReplica("table", 0, 1)
        with Admin(bootstrap_servers=address) as admin:
            present = admin.describe_replica_log_dirs([copy])[copy].current_replica_log_dir
            other = next(str(each) for each in disks if str(each) != present)
            with Probe("a copy moves to another directory", address):
                admin.alter_replica_log_dirs({copy: other})
                until(lambda: admin.describe_replica_log_dirs([copy])[copy].current_replica_log_dir == other)
    with broker(where, log_cleaner_backoff_ms="500") as address, Probe("a compaction", address):
        until(Path(other, "cleaner-offset-checkpoint").exists)


def measure_two_brokers() -> None:
    """Measure a leader, and the follower that fetches from it."""
    with Cluster(brokers=2, log_cleaner_enable=False) as cluster, ExitStack() as stack:
        leader, follower = cluster.addresses.values()
        with Admin(bootstrap_servers=leader) as admin, Wire(leader) as wire:
            configs = {"segment.bytes": str(SEGMENT_BYTES)}
            admin.create_topics([NewTopic("table", replica_assignments={0: (1,)}, configs=configs)])
            until(lambda: "table" in admin.list_topics() and described(admin).leader == 1)
            fill(wire)
            stack.enter_context(Probe("another takes a copy in: its leader", leader))
            stack.enter_context(Probe("another takes a copy in: itself", follower))
            admin.alter_partition_reassignments({PLACE: [1, 2]})
            until(lambda: len(described(admin).in_sync_replicas) == 2)


def described(admin: Admin) -> PartitionInfo:
    return admin.describe_topics([PLACE.topic])[PLACE.topic].partitions[PLACE.partition]


def main() -> None:
    """Print all results."""
    os.environ.setdefault("LOG_MB", "1000")
    print(f"{'ms that a small request waits':34}   count      p50      p99    p99.9      max")
    with TemporaryDirectory(prefix="stalls-") as folder:
        measure_one_broker(Path(folder))
    measure_two_brokers()


if __name__ == "__main__":
    main()
