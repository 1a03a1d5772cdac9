"""Measure the delay of records during rebalances, with the eager protocol, the cooperative protocol, and KIP-848.

Groups of four members read the same twelve partitions, to which one producer writes at a constant rate. A fifth member
joins and leaves again. One of the four works for 2 s between two polls, as real members do; an eager group stops
completely until it polls. The delay of a record is the time from the write until a member receives it. Records of the
working member are excluded. All settings are the clients' defaults, so members detect a rebalance with a heartbeat,
every 3 s (5 s in KIP-848). The plot is written to `out/rebalance-delay.png`.
"""

from __future__ import annotations

import statistics
import struct
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import confluent_kafka as ck
from rich.table import Table

from benchmarks.brokers import Running, ottla_broker
from benchmarks.race import show
from ottla import Admin, Consumer, NewTopic, Producer

TOPIC, PARTITIONS, MEMBERS = "delays", 12, 4
PACE = 0.05
"""The seconds between two records of a partition."""
COMES, GOES, ENDS = 3.0, 14.0, 25.0
"""The times of events in a run, in seconds."""
WORK = 2.0
LATE = 0.1
PATIENCE = 60.0
STAMP = struct.Struct(">d")


class Way(NamedTuple):
    """The settings of a group protocol."""

    name: str
    client: str
    settings: dict[str, str]


WAYS = (
    Way("ottla, eager", "ottla", {"partition.assignment.strategy": "range"}),
    Way("ottla, cooperative", "ottla", {"partition.assignment.strategy": "cooperative-sticky"}),
    Way("ottla, KIP-848", "ottla", {"group.protocol": "consumer"}),
    Way("librdkafka, eager", "librdkafka", {"partition.assignment.strategy": "range"}),
    Way("librdkafka, cooperative", "librdkafka", {"partition.assignment.strategy": "cooperative-sticky"}),
    Way("librdkafka, KIP-848", "librdkafka", {"group.protocol": "consumer"}),
)


class Delay(NamedTuple):
    """The delay of a record that a member has received."""

    written: float
    seconds: float


class Reader:
    """A member in a thread."""

    def __init__(self, server: Running, way: Way, delays: list[Delay], work: float = 0.0) -> None:
        self._delays = delays
        self._work = work
        self._going = False
        self.owned = 0
        place = {"bootstrap.servers": server.bootstrap, "group.id": way.name.replace(", ", "-"), **way.settings}
        run = self._run_ottla if way.client == "ottla" else self._run_librdkafka
        self._thread = threading.Thread(target=run, args=(place,))
        self._thread.start()

    def leave(self) -> None:
        self._going = True

    def join(self) -> None:
        self._thread.join()

    def _run_ottla(self, place: dict[str, str]) -> None:
        with Consumer(place) as consumer:
            consumer.subscribe([TOPIC])
            while not self._going:
                self._note([record.value or b"" for record in consumer.poll(0.1)])
                self.owned = len(consumer.assignment())

    def _run_librdkafka(self, place: dict[str, str]) -> None:
        consumer = ck.Consumer({**place, "log_level": 2})
        consumer.subscribe([TOPIC])
        while not self._going:
            messages = consumer.consume(500, 0.1) if self._work else [consumer.poll(0.1)]
            self._note([each.value() or b"" for each in messages if each is not None and not each.error()])
            self.owned = len(consumer.assignment())
        consumer.close()

    def _note(self, values: Sequence[bytes]) -> None:
        if self._work:
            time.sleep(self._work)
            return
        now = time.perf_counter()
        for value in values:
            (written,) = STAMP.unpack(value)
            self._delays.append(Delay(written, now - written))


def write(server: Running, is_over: threading.Event) -> None:
    """Write a record to each partition at each tick."""
    with Producer(bootstrap_servers=server.bootstrap, linger_ms=0) as producer:
        tick = time.perf_counter()
        while not is_over.is_set():
            for partition in range(PARTITIONS):
                producer.send(TOPIC, STAMP.pack(time.perf_counter()), partition=partition)
            tick += PACE
            time.sleep(max(tick - time.perf_counter(), 0))


def delays_of(server: Running) -> dict[str, list[Delay]]:
    """Run all groups at the same time, and return their delays by protocol. Times count from the start of the run."""
    with Admin(bootstrap_servers=server.bootstrap) as admin:
        admin.create_topics([NewTopic(TOPIC, PARTITIONS)])
    delays: dict[str, list[Delay]] = {way.name: [] for way in WAYS}
    groups = {
        way.name: [Reader(server, way, delays[way.name], WORK * (number == 0)) for number in range(MEMBERS)]
        for way in WAYS
    }
    is_over = threading.Event()
    writer = threading.Thread(target=write, args=(server, is_over))
    writer.start()
    wait(lambda: all(is_shared(members) for members in groups.values()))
    begin = time.perf_counter()
    time.sleep(COMES)
    newcomers = [Reader(server, way, delays[way.name]) for way in WAYS]
    time.sleep(begin + GOES - time.perf_counter())
    for newcomer in newcomers:
        newcomer.leave()
    time.sleep(begin + ENDS - time.perf_counter())
    is_over.set()
    writer.join()
    everybody = [*newcomers, *(member for members in groups.values() for member in members)]
    for member in everybody:
        member.leave()
    for member in everybody:
        member.join()
    return {
        name: [Delay(each.written - begin, each.seconds) for each in found if begin <= each.written <= begin + ENDS - 1]
        for name, found in delays.items()
    }


def is_shared(members: Sequence[Reader]) -> bool:
    return [member.owned for member in members] == [PARTITIONS // MEMBERS] * MEMBERS


def wait(condition: Callable[[], bool]) -> None:
    deadline = time.perf_counter() + PATIENCE
    while not condition():
        assert time.perf_counter() < deadline, "the groups did not settle"
        time.sleep(0.05)


def draw(delays: dict[str, list[Delay]]) -> Path:
    """Draw the number of waiting records over time."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    clients = list(dict.fromkeys(way.client for way in WAYS))
    figure, every = pyplot.subplots(len(clients), 1, figsize=(9, 5.5), sharex=True, sharey=True)
    for client, axes in zip(clients, every, strict=True):
        for way in WAYS:
            if way.client == client:
                moments, counts = waiting(delays[way.name])
                axes.plot(moments, counts, label=way.name.partition(", ")[2], linewidth=1.5)
        for moment, what in ((COMES, "a fifth member comes"), (GOES, "it goes")):
            axes.axvline(moment, color="grey", linestyle=":", linewidth=1)
            axes.annotate(
                what,
                (moment, 1),
                xycoords=("data", "axes fraction"),
                xytext=(4, -12),
                textcoords="offset points",
                fontsize=8,
                color="grey",
            )
        axes.set_title(f"clients: {client}", fontsize=10, loc="left")
        axes.set_ylabel("records that wait")
        axes.grid(alpha=0.3)
        axes.legend(loc="upper right", fontsize=8)
    every[-1].set_xlabel("s")
    figure.suptitle("Records that wait while a group rebalances, one of whose members is at work for 2 s at a time")
    figure.tight_layout()
    path = Path("out", "rebalance-delay.png")
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=120, bbox_inches="tight")
    return path


def waiting(delays: Sequence[Delay]) -> tuple[list[float], list[int]]:
    """Return times, and the number of records at each that are written and not yet received by a member."""
    moments = [number / 20 for number in range(int(ENDS * 20))]
    ends = [(each.written, each.written + each.seconds) for each in delays]
    return moments, [sum(written <= moment < had for written, had in ends) for moment in moments]


def tell(delays: dict[str, list[Delay]]) -> None:
    """Print a line for each protocol."""
    shown = Table(title="records that wait while a fifth member comes and goes", title_justify="left")
    for heading in ("", "records", f"late by {LATE:g} s", "longest, s", "all together, s", "median, ms"):
        shown.add_column(heading, justify="right")
    for name, found in delays.items():
        spans = [each.seconds for each in found]
        late = sum(span > LATE for span in spans)
        share = f"{late / len(spans):.1%}"
        median_ms = statistics.median(spans) * 1000
        shown.add_row(name, f"{len(spans):,}", share, f"{max(spans):.2f}", f"{sum(spans):,.0f}", f"{median_ms:.1f}")
    show(shown)


def main() -> None:
    with ottla_broker() as server:
        delays = delays_of(server)
    tell(delays)
    print(f"drawn in {draw(delays)}")


if __name__ == "__main__":
    main()
