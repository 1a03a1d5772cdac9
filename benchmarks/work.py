"""Measure `ottla.work`: tasks per second against Celery on Redis, and the delay from `send` to the start of the function.

Tasks per second: the function is empty, all tasks are sent before, and the span from the first to the last task counts. Both
sides have the same two cores: Celery with its worker and Redis, Ottla with its worker and our broker. Celery stores no
results and prefetches 64 tasks per process; Redis writes nothing to the disk.

Delay: a producer sends 500 records per second with 50 keys; p99. Then the same with one more key that always fails.

python -m benchmarks.work [--short]
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from functools import partial

import ottla
from benchmarks import confluent
from benchmarks._worker import FAILING
from benchmarks.brokers import Running, ottla_broker
from benchmarks.confluent import new_topic
from benchmarks.duel import Line, ratio, report
from rivals.celery_on_redis import Redis, celery_python, redis

TASKS = 200_000
CELERY_TASKS = 20_000
POOLS = (("prefork", 2), ("threads", 10), ("solo", 1))
"""Celery's pools, with their concurrency. The first one is Celery's default on two cores."""
WAYS = ("asyncio", "threads")
SIZE = 100
RATE = 500
KEYS = 50
FAILING_PART = 51
"""One of this number of records has the failing key."""
SECONDS = 20
ROUNDS = 5


def tasks_of_ottla(server: Running, way: str, tasks: int) -> float:
    """Return the tasks per second of a worker on a new topic that is filled before."""
    topic = new_topic(server)
    confluent.fill(server, topic, SIZE, tasks)
    return float(start_worker(server, topic, way, "empty", tasks).communicate()[0])


def tasks_of_celery(place: Redis, pool: str, concurrency: int, tasks: int) -> float:
    """Return the tasks per second of a Celery worker."""
    command = [str(celery_python()), "-m", "benchmarks._celery_tasks", place.url, str(tasks), pool, str(concurrency)]
    return float(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def name_side(pool: str, concurrency: int) -> str:
    """Return the name of a form of Celery."""
    return f"Celery {pool} {concurrency}"


def start_worker(server: Running, topic: str, way: str, kind: str, records: int) -> subprocess.Popen[str]:
    """Start a worker in a process. It prints its figure."""
    command = [sys.executable, "-m", "benchmarks._worker", server.bootstrap, topic, way, kind, str(records)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def delay(server: Running, way: str, seconds: float, *, fails: bool) -> float:
    """Return the p99 in milliseconds from `send` to the start of the function, of the keys that do not fail."""
    topic = new_topic(server)
    records = int(RATE * seconds)
    with (
        start_worker(server, topic, way, "timed", records) as worker,
        ottla.Producer(bootstrap_servers=server.bootstrap, linger_ms=0) as producer,
    ):
        assert worker.stdout is not None
        producer.send(topic, b"").result()
        assert worker.stdout.readline() == "ready\n"
        send(producer, topic, records, fails=fails)
        return float(worker.stdout.read())


def send(producer: ottla.Producer, topic: str, records: int, *, fails: bool) -> None:
    """Send the records at their rate, with the send time as value."""
    begin = time.perf_counter()
    for number in range(records):
        left = begin + number / RATE - time.perf_counter()
        if left > 0:
            time.sleep(left)
        if fails and number % FAILING_PART == 0:
            producer.send(topic, b"", key=FAILING)
        producer.send(topic, time.perf_counter_ns().to_bytes(8, "big"), key=b"%d" % (number % KEYS))


def throughput_lines(server: Running, place: Redis, rounds: int, scale: float) -> list[tuple[Line, str]]:
    """Return a row for each way of ours, against each pool of Celery, in turns."""
    turns = {
        **{way: partial(tasks_of_ottla, server, way, int(TASKS * scale)) for way in WAYS},
        **{
            name_side(pool, size): partial(tasks_of_celery, place, pool, size, int(CELERY_TASKS * scale))
            for pool, size in POOLS
        },
    }
    found: dict[str, list[float]] = {name: [] for name in turns}
    for _ in range(rounds):
        for name, turn in turns.items():
            found[name].append(turn())
    lines = []
    for way in WAYS:
        columns = [found[way], *(found[name_side(pool, size)] for pool, size in POOLS)]
        ratios = [ratio(columns[0], theirs) for theirs in columns[1:]]
        lines.append((Line(f"{way}, tasks/s", [statistics.median(each) for each in columns], ratios), "≥ 5"))
    return lines


def delay_lines(server: Running, rounds: int, seconds: float) -> list[tuple[Line, str]]:
    """Return a row for each way: the p99 without a failing key, with one, and the ratio."""
    lines = []
    for way in WAYS:
        found: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(rounds):
            for fails in found:
                found[fails].append(delay(server, way, seconds, fails=fails))
        medians = [statistics.median(found[True]), statistics.median(found[False])]
        lines.append((Line(f"{way}, p99 ms", medians, [ratio(found[True], found[False])]), "≤ 10 ms, ≤ 1.1"))
    return lines


def main() -> None:
    is_short = "--short" in sys.argv
    rounds, scale, seconds = (1, 0.1, 4.0) if is_short else (ROUNDS, 1.0, SECONDS)
    celery_python()
    with ottla_broker("group.initial.rebalance.delay.ms=0") as server, redis() as place:
        sides = [server, *(Running(name_side(pool, size), place.url, place.process) for pool, size in POOLS)]
        report("work with an empty function", sides, throughput_lines(server, place, rounds, scale))
        sides = [Running(name, server.bootstrap, server.process) for name in ("with a failing key", "without")]
        report(f"from send to the start at {RATE}/s", sides, delay_lines(server, rounds, seconds))


if __name__ == "__main__":
    main()
