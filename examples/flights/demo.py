"""The whole of it: broker, replay, Spark, table, picture, check."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from examples.flights import data
from examples.flights.chart import draw
from examples.flights.check import Verdict, compare
from examples.flights.replay import replay
from examples.flights.results import count, read_delays
from examples.flights.spark_process import JobError, run_job
from examples.flights.worst_days import by_day, worst_days
from ottla import Admin, Broker, NewTopic, OttlaError
from ottla.spark import ensure_java

PARTITIONS = 6
OUT = Path("out")
SHOWN = 20
"""How many wrong rows are printed when there are any."""


class Rate(ProgressColumn):
    """Records per second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{speed:,.0f}/s" if speed else "", style="progress.data.speed")


def bars(console: Console) -> Progress:
    """How progress is shown."""
    name, count = TextColumn("{task.description:<36}"), TextColumn("{task.completed:>7,.0f}")
    return Progress(name, BarColumn(bar_width=None), count, Rate(), TimeElapsedColumn(), console=console)


@contextmanager
def started_broker(folder: str, console: Console) -> Iterator[str]:
    """An embedded broker with the two topics; yields its address."""
    started = time.monotonic()
    with Broker(folder) as broker:
        took = time.monotonic() - started
        console.print(f"broker on {broker.bootstrap_servers}, started in {took * 1000:.0f} ms", highlight=False)
        with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            # The records are of 2013. Retention goes by their own time, and would find all of them too old.
            keep = {"retention.ms": "-1"}
            admin.create_topics([NewTopic("flights", PARTITIONS, 1, keep), NewTopic("delays", 1, 1, keep)])
        yield broker.bootstrap_servers


def pipeline(console: Console, flights: pd.DataFrame) -> tuple[int, pd.DataFrame]:
    """Flights through broker and Spark and back: how many the topic held, and every row that came out."""
    OUT.mkdir(exist_ok=True)
    with TemporaryDirectory(prefix="ottla-flights-") as folder, started_broker(folder + "/broker", console) as servers:
        with bars(console) as progress:
            replay(servers, flights, progress)
            flights_in = count(servers, "flights") - PARTITIONS  # less the closing records
            run_job(servers, Path(folder), OUT / "flights-spark.log", flights_in + PARTITIONS, progress)
        return flights_in, read_delays(servers)


def show(console: Console, delays: pd.DataFrame) -> None:
    """The table and the picture."""
    days = by_day(delays)
    console.print("", worst_days(days), "", sep="\n")
    draw(delays, days, OUT / "flights.png")
    console.print(f"chart in {OUT / 'flights.png'}", highlight=False)


def run(console: Console) -> Verdict:
    """The whole story."""
    ensure_java()
    flights = data.flights()
    flights_in, delays = pipeline(console, flights)
    verdict = compare(flights_in, delays, data.expected_delays(flights), data.airlines())
    if not delays.empty:
        show(console, delays)
    for line in verdict.wrong[:SHOWN]:
        console.print(line, highlight=False)
    return verdict


def demo() -> int:
    """Run it and print the verdict; the exit status is 0 only if all of it is true."""
    console = Console()
    try:
        verdict = run(console)
    except (JobError, OttlaError) as error:
        console.print(str(error), style="red", highlight=False, soft_wrap=True)
        return 1
    console.print(str(verdict), highlight=False, soft_wrap=True)
    return 0 if verdict.good else 1
