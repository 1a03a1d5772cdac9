"""Celery's side of the benchmark of work loops; runs in the environment of `rivals.celery_on_redis`, without Ottla.

python -m benchmarks._celery_tasks REDIS TASKS POOL CONCURRENCY

Sends tasks to an empty Redis, starts a worker, and prints the tasks per second from the first to the last one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from celery import Celery

PLACE = "OTTLA_BENCH_REDIS"
MARKS = "OTTLA_BENCH_MARKS"
SECONDS = 300.0

app = Celery("tasks", broker=os.environ.get(PLACE, sys.argv[1] if len(sys.argv) > 1 else ""))
app.conf.update(
    task_ignore_result=True,
    worker_prefetch_multiplier=64,  # the default 4 makes it slower
    broker_connection_retry_on_startup=True,
    worker_hijack_root_logger=False,
)


def run_empty(number: int, last: int) -> None:
    """Do nothing. The first and the last task write the time to a file."""
    if number in (0, last):
        path = Path(os.environ[MARKS]) / ("first" if number == 0 else "last")
        part = path.with_suffix(".part")
        part.write_text(str(time.perf_counter_ns()), encoding="utf-8")
        part.rename(path)


empty = app.task(name="empty")(run_empty)


def main(redis: str, tasks: str, pool: str, concurrency: str) -> None:
    count = int(tasks)
    with app.producer_pool.acquire(block=True) as producer:
        for number in range(count):
            empty.apply_async((number, count - 1), producer=producer)
    command = [sys.executable, "-m", "celery", "-A", "benchmarks._celery_tasks", "worker", "--loglevel=ERROR"]
    command += [f"--pool={pool}", f"--concurrency={concurrency}", "--without-gossip", "--without-mingle"]
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {PLACE: redis, MARKS: folder, "PYTHONWARNINGS": "ignore"}
        first, last = Path(folder) / "first", Path(folder) / "last"
        with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as worker:
            try:
                deadline = time.monotonic() + SECONDS
                while not (first.exists() and last.exists()):
                    assert worker.poll() is None, f"the worker ended with status {worker.returncode}"
                    assert time.monotonic() < deadline, f"the worker was not ready after {SECONDS} s"
                    time.sleep(0.02)
            finally:
                worker.terminate()
        span = int(last.read_text(encoding="utf-8")) - int(first.read_text(encoding="utf-8"))
    print((count - 1) / span * 1e9)


if __name__ == "__main__":
    main(*sys.argv[1:])
